import { splitToken } from '@leasehold/core'

/** A token as people read it: within the first epoch its counter says it all, later it is `epoch:counter`. */
export function tokenText(token: string | bigint): string {
  const { epoch, serial } = splitToken(BigInt(token) as never)
  return epoch <= 1 ? String(serial) : `${epoch}:${serial}`
}
