/** Waits until `condition` is true, at most `timeoutMs`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = condition.toString(),
  timeoutMs = 30_000,
): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
