import { InvalidError } from '@leasehold/core'

export interface RedisWarning {
  readonly setting: string
  readonly value: string
  /** How a mark can be lost. */
  readonly why: string
}

/** Returns the settings that can make Redis lose an acknowledged mark, as far as the server reports them. */
export async function warningsOf(
  call: (command: string, ...args: string[]) => Promise<unknown>,
): Promise<RedisWarning[]> {
  const info = fieldsOf(String(await call('INFO')))
  const warnings: RedisWarning[] = []
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  if (policy.startsWith('allkeys') || policy === 'unknown') {
    warnings.push({ setting: 'maxmemory-policy', value: policy, why: 'a mark can be evicted: use noeviction' })
  }
  const aof = info.get('aof_enabled')
  if (aof !== '1') {
    const why = 'a crash loses the writes since the last snapshot: use appendonly yes'
    warnings.push({ setting: 'appendonly', value: aof === '0' ? 'no' : 'unknown', why })
  } else {
    const fsync = await configOf(call, 'appendfsync')
    if (fsync !== 'always') {
      const why = 'a power cut loses the last acknowledged writes: use appendfsync always'
      warnings.push({ setting: 'appendfsync', value: fsync, why })
    }
  }
  if (info.get('role') === 'slave') {
    warnings.push({ setting: 'role', value: 'replica', why: 'a guard needs the primary' })
  } else if (Number(info.get('connected_slaves') ?? 0) > 0) {
    const why = 'replication is asynchronous: after a failover the newest marks are missing'
    warnings.push({ setting: 'connected_slaves', value: String(info.get('connected_slaves')), why })
  }
  return warnings
}

/** The error of `checkServer` with `strict`. */
export function strictError(warnings: readonly RedisWarning[]): InvalidError {
  const list = warnings.map(({ setting, value, why }) => `${setting} is ${value} (${why})`).join('; ')
  return new InvalidError(`this Redis can forget marks: ${list}`, {
    code: 'mismatch',
    hint: 'change the settings, or keep what must not be lost in another store',
  })
}

function fieldsOf(info: string): Map<string, string> {
  const lines = info.split(/\r?\n/).filter((line) => line.includes(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** Reads a setting; `unknown` where a managed server forbids CONFIG. */
async function configOf(call: (command: string, ...args: string[]) => Promise<unknown>, name: string): Promise<string> {
  try {
    const answer = await call('CONFIG', 'GET', name)
    return Array.isArray(answer) && answer.length > 1 ? String(answer[1]) : 'unknown'
  } catch {
    return 'unknown'
  }
}
