import * as fs from 'node:fs'
import { join } from 'node:path'
import { folderFailed } from '../storage/storage-errors.js'
import { syncFolder } from './folder-sync.js'
import { claimFolder } from './ownership/claim-folder.js'

const OWNERS = /^owner[.-]/
const ASIDE = 'damaged-'

/**
 * Moves everything of a damaged data folder into a new folder inside it, and leaves `mark` in its place, durably. What is
 * moved is never read again by a member; it is there for people. If it stops half way, a second call moves the rest.
 *
 * @param mark name and content of the file that says what this folder is from now on; written before anything moves
 * @returns where it is now
 * @throws StorageError when the folder has a living owner, or cannot be written
 */
export async function moveToQuarantine(dir: string, mark: { name: string; text: string }, at: Date): Promise<string> {
  const owner = await claimFolder(dir)
  try {
    const aside = join(dir, `${ASIDE}${at.toISOString().replaceAll(':', '-')}`)
    fs.mkdirSync(aside, { recursive: true, mode: 0o700 })
    const draft = join(dir, `${mark.name}.tmp`)
    fs.writeFileSync(draft, mark.text, { flush: true, mode: 0o600 })
    if (fs.existsSync(join(dir, mark.name))) fs.copyFileSync(join(dir, mark.name), join(aside, mark.name))
    fs.renameSync(draft, join(dir, mark.name))
    syncFolder(dir)
    for (const entry of fs.readdirSync(dir, { withFileTypes: true })) {
      if (!entry.isFile() || entry.name === mark.name || OWNERS.test(entry.name)) continue
      fs.renameSync(join(dir, entry.name), join(aside, entry.name))
    }
    syncFolder(aside)
    syncFolder(dir)
    return aside
  } catch (error) {
    throw folderFailed(dir, error)
  } finally {
    await owner.release()
  }
}
