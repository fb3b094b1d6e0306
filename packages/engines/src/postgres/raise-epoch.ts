import { randomBytes } from 'node:crypto'
import { InvalidError } from '@leasehold/core'
import { CallError, Database } from './database.js'
import { errorOfPg, isRaised, loadPg, type PgDriver } from './driver.js'
import { StatementLimit } from './statement-limit.js'
import { parsePostgresUrl } from './url.js'

const TIMEOUT_MS = 10_000

/**
 * Raises the epoch of a database, after the promotion of a replica that may have missed entries, or a restored backup.
 * All sessions and ordinary holds end, and later tokens are greater than any earlier one. Returns the epoch before it.
 *
 * @throws InvalidError when the epoch is not greater than the present one
 */
export async function raiseEpoch(url: string, epoch: number, driver?: PgDriver): Promise<{ readonly before: number }> {
  const place = parsePostgresUrl(url)
  const database = new Database(driver ?? (await loadPg()), place, {
    timeoutMs: TIMEOUT_MS,
    limit: new StatementLimit(),
    lost: () => {},
  })
  try {
    await database.open()
    const { epoch: before } = await database.load()
    await database.raiseEpoch(epoch, randomBytes(8).readBigInt64BE().toString())
    return { before }
  } catch (error) {
    if (!(error instanceof CallError)) throw error
    if (!isRaised(error.cause, 'epoch')) throw errorOfPg(error.cause, error.what)
    const { message } = error.cause as Error
    throw new InvalidError(message, { cause: error.cause, hint: 'give an epoch that was never used' })
  } finally {
    await database.end().catch(() => {})
  }
}
