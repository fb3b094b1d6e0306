/** Errors which say that nothing has happened. */
export const DEFINITE = new Set([
  'busy',
  'timeout',
  'aborted',
  'mismatch',
  'invalid',
  'limit',
  'version-conflict',
  'not-holder',
  'stale-token',
])

export function codeOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string }
  return code ?? message ?? String(error)
}

export function count(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1)
}
