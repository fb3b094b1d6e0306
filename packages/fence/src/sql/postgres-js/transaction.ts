import { UnavailableError } from '@leasehold/core'
import { unavailable, unknownOutcome } from '../../common/errors.js'
import { endedInside } from '../open.js'
import { isUnavailable } from '../postgres/errors.js'
import type { Callable, PostgresJs } from './client.js'

/**
 * Runs one transaction. `check` runs right before COMMIT. postgres.js commits nothing after a failed statement, even if the body
 * has caught its error.
 */
export async function transaction<T>(
  sql: PostgresJs,
  isolation: string,
  check: () => void,
  body: (tx: Callable) => Promise<T>,
): Promise<T> {
  const at: { stage: 'connecting' | 'open' | 'committing' | 'ended' } = { stage: 'connecting' }
  const hasEnded = () => at.stage === 'ended'
  try {
    const value = await sql.begin(isolation, async (tx: Callable) => {
      at.stage = 'open'
      const result = await settled(hasEnded, async () => await body(guardedTx(tx, hasEnded)))
      check()
      at.stage = 'committing'
      // Wrapped in an object, because postgres.js awaits the items of an array.
      return { result }
    })
    return (value as { result: T }).result
  } catch (error) {
    if (!isUnavailable(error)) throw error
    if (at.stage === 'committing') throw unknownOutcome(error)
    throw unavailable(
      at.stage === 'open' ? 'the connection to the database was lost' : 'the database cannot be reached',
      error,
    )
  } finally {
    at.stage = 'ended'
  }
}

/**
 * Returns the body's result. Never settles once the transaction has ended, because postgres.js would then send a ROLLBACK over a
 * lost connection, and end the process by an error that cannot be caught.
 */
async function settled<T>(hasEnded: () => boolean, body: () => Promise<T>): Promise<T> {
  try {
    return await body()
  } catch (error) {
    // postgres.js reports the loss of the connection to the statement and to the transaction in the same turn.
    if (isUnavailable(error) || error instanceof UnavailableError) await new Promise((resolve) => setTimeout(resolve))
    throw error
  } finally {
    if (hasEnded()) await new Promise(() => {})
  }
}

/** A statement that ends the transaction; a rollback to a savepoint does not. postgres.js itself rejects BEGIN. */
const ENDS = /^(?:\s|\/\*[^]*?\*\/|--[^\n]*\n)*(?:commit|end|abort|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b))\b/i

function assertKeepsOpen(text: unknown): void {
  if (typeof text === 'string' && ENDS.test(text)) throw endedInside()
}

/**
 * Wraps the transaction's `sql` so that it rejects once the transaction has ended. After a lost connection postgres.js reconnects
 * under the same `sql`, and a body that continues would write outside of every transaction.
 */
function guardedTx(tx: Callable, hasEnded: () => boolean): Callable {
  const assertOpen = () => {
    if (hasEnded()) {
      throw new UnavailableError(
        'the transaction has ended: its connection was lost, or its body continued after its end',
        {
          hint: 'nothing was written; the same call may succeed later',
        },
      )
    }
  }
  return new Proxy(tx, {
    apply(target, self, args) {
      assertOpen()
      assertKeepsOpen((args[0] as { raw?: readonly string[] } | undefined)?.raw?.[0])
      return Reflect.apply(target, self, args) as unknown
    },
    get(target, property) {
      assertOpen()
      if (property === 'unsafe') {
        return (...args: Parameters<Callable['unsafe']>) => {
          assertKeepsOpen(args[0])
          return target.unsafe(...args)
        }
      }
      return Reflect.get(target, property, target) as unknown
    },
  })
}
