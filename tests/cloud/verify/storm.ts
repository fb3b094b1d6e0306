import { StaleTokenError, UnavailableError, UnknownOutcomeError } from '@leasehold/core'
import type { GuardableHold } from '@leasehold/fence'

const WORKERS = 8

export interface StormTarget {
  /** Opens, reads, writes one more. */
  unit(hold: GuardableHold): Promise<unknown>
  value(resource: string): Promise<number>
}

/** Several holders at once, most of them late: throws unless every acknowledged unit is there. */
export async function storm(units: number, target: StormTarget, log: (line: string) => void = console.log) {
  const name = `storm-${Date.now().toString(36)}-${Math.floor(Math.random() * 2 ** 32).toString(36)}`
  const count = { acknowledged: 0, refused: 0, unknown: 0 }
  let token = 0n
  const worker = async () => {
    while (token < BigInt(units)) {
      const mine = ++token
      const hold: GuardableHold = { names: [name], mode: 'exclusive', tokenOf: () => mine, assertHeld() {} }
      try {
        await target.unit(hold)
        count.acknowledged++
      } catch (error) {
        if (error instanceof StaleTokenError || error instanceof UnavailableError) count.refused++
        else if (error instanceof UnknownOutcomeError) count.unknown++
        else throw error
      }
    }
  }
  await Promise.all(Array.from({ length: WORKERS }, worker))
  const value = await target.value(name)
  const what = `${count.acknowledged} units acknowledged, ${count.refused} refused, ${count.unknown} unknown, value ${value}`
  if (value < count.acknowledged || value > count.acknowledged + count.unknown)
    throw new Error(`units were lost: ${what}`)
  log(`holds   ${what}`)
  return { ...count, value }
}
