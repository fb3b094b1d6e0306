import { createRequire, syncBuiltinESMExports } from 'node:module'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NodeDisk } from '../../src/node/node-disk.js'
import { makeFolder } from '../../src/node/folder-sync.js'
import { recoverFolder } from '../../src/node/offline/recover.js'
import { openNodeReplica } from '../../src/node/open-replica.js'
import { dyingAfter } from '../support/dying-disk.js'
import { SMALL, stop, usedFolder } from '../support/folders.js'

type Call = (...args: unknown[]) => unknown
const machine = createRequire(import.meta.url)('node:fs') as Record<string, Call>

/** What `work` syncs and renames, in order: `sync PATH`, `rename PATH`. */
async function changesOf(work: () => unknown): Promise<string[]> {
  const done: string[] = []
  const paths = new Map<unknown, string>()
  const { openSync, fsyncSync, fdatasyncSync, renameSync } = machine as Record<string, Call>
  const real = { openSync, fsyncSync, fdatasyncSync, renameSync } as Record<string, Call>
  machine.openSync = (...args) => {
    const fd = real.openSync?.(...args)
    paths.set(fd, String(args[0]))
    return fd
  }
  for (const name of ['fsyncSync', 'fdatasyncSync']) {
    machine[name] = (fd) => {
      real[name]?.(fd)
      done.push(`sync ${paths.get(fd)}`)
    }
  }
  machine.renameSync = (from, to) => {
    real.renameSync?.(from, to)
    done.push(`rename ${String(to)}`)
  }
  syncBuiltinESMExports()
  try {
    await work()
  } finally {
    Object.assign(machine, real)
    syncBuiltinESMExports()
  }
  return done
}

let dir: string
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'leasehold-folders-')))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

describe.skipIf(process.platform === 'win32')('a data folder', () => {
  it('gets a durable name when it is created, and so do its parents', async () => {
    const path = join(dir, 'a', 'b')
    const changes = await changesOf(() => makeFolder(path))
    expect(changes).toEqual(expect.arrayContaining([`sync ${join(dir, 'a')}`, `sync ${dir}`, `sync ${dirname(dir)}`]))
  })

  it('gets a durable name also when another process created it behind a symbolic link, and is synced once', async () => {
    const path = join(dir, 'a', 'b')
    mkdirSync(path, { recursive: true })
    symlinkSync(path, join(dir, 'link'))
    const disk = new NodeDisk(join(dir, 'link'))
    const first = await changesOf(() => disk.syncFolder())
    expect(first).toEqual(expect.arrayContaining([`sync ${join(dir, 'a')}`, `sync ${dir}`]))
    expect(await changesOf(() => disk.syncFolder())).toEqual([`sync ${join(dir, 'link')}`])
  })

  it('is synced at a restart with names, identity, snapshots and log', async () => {
    const member = await openNodeReplica({ dir, ...SMALL })
    await stop(member)
    const changes = await changesOf(async () => stop(await openNodeReplica({ dir, ...SMALL, mustExist: true })))
    const names = changes.filter((change) => dirname(change.slice('sync '.length)) === dir).map((one) => basename(one))
    expect(changes[0]).toBe(`sync ${dir}`)
    expect(names.slice(0, 3)).toEqual(['identity', expect.stringMatching(/^log-/), expect.stringMatching(/^snapshot-/)])
  })

  it("is changed by a recover only after the recover's record is durable", async () => {
    const data = join(dir, 'data')
    await usedFolder(data, { epoch: 2 })
    // Killed right after the record got its name.
    for (let allowed = 1; ; allowed++) {
      await dyingAfter(allowed, () => recoverFolder({ dir: data, epoch: 3 }))
      if (new NodeDisk(data).list().includes('recovering')) break
    }
    const changes = await changesOf(() => recoverFolder({ dir: data, epoch: 3 }))
    const record = changes.indexOf(`sync ${join(data, 'recovering')}`)
    const moved = changes.findIndex((change) => change.startsWith(`rename ${join(data, 'before-epoch-3')}`))
    expect(record).toBeGreaterThan(-1)
    expect(moved).toBeGreaterThan(record)
    expect(changes.slice(record, moved)).toContain(`sync ${data}`)
  })
})
