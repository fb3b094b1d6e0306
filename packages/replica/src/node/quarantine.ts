import * as fs from 'node:fs'
import { join } from 'node:path'
import { folderFailed } from '../storage/storage-errors.js'
import { syncFolder } from './folder-sync.js'
import { claimFolder } from './ownership/claim-folder.js'

const OWNERS = /^owner[.-]/
const QUARANTINE = 'damaged-'

/**
 * Moves the files of a damaged data folder into a new folder inside it, and leaves the file `mark` in their place, durably.
 * Members never read the moved files again; they are kept for inspection. After an interruption, a second call moves the rest.
 *
 * @param mark name and content of the file that records the folder's new role; written before any file moves
 * @returns the path of the new folder
 * @throws StorageError when the folder has a living owner, or cannot be written
 */
export async function moveToQuarantine(dir: string, mark: { name: string; text: string }, at: Date): Promise<string> {
  const owner = await claimFolder(dir)
  try {
    const aside = join(dir, `${QUARANTINE}${at.toISOString().replaceAll(':', '-')}`)
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
