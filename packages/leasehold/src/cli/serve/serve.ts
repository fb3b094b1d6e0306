import { resolve } from 'node:path'
import { InvalidError, StorageError, UnavailableError } from '@leasehold/core'
import type { MemberStatus } from '@leasehold/replica'
import { openNodeReplica } from '@leasehold/replica/node'
import { createLogger, createServer, type LeaseholdServer } from '@leasehold/server'
import { print, printJson } from '../output.js'

export interface ServeOptions {
  readonly data: string
  readonly listen: Listen
  readonly advertiseUrl?: string
  readonly epoch?: number
  readonly allowAnonymous?: boolean
  readonly takeOver?: boolean
  readonly logLevel: string
  readonly json?: boolean
}

export interface Listen {
  readonly host: string
  readonly port: number
}

type Member = Awaited<ReturnType<typeof openNodeReplica>>

const READY_LIMIT_MS = 30_000
const READY_RETRY_MS = 50
/** A stop that takes longer than this is given up: the log is durable anyway. */
const STOP_LIMIT_MS = 15_000
const EXIT_IMPATIENT = 130

/** Runs the service until a signal stops it. Throws when it cannot start, or when the member stops by itself. */
export async function serve(options: ServeOptions): Promise<void> {
  const log = createLogger({ level: options.logLevel })
  const stopping = new Stopping()
  const url = options.advertiseUrl
  const member = await openNodeReplica({
    dir: options.data,
    log,
    takeOver: options.takeOver === true,
    ...(options.epoch === undefined ? {} : { epoch: options.epoch }),
    ...(url === undefined ? {} : { url }),
  })
  let server: LeaseholdServer | undefined
  try {
    checkEpoch(member.status, options.epoch)
    await ready(member)
    server = await createServer({
      member,
      logger: log,
      listen: options.listen,
      allowAnonymous: options.allowAnonymous === true,
      ...(url === undefined ? {} : { advertiseUrl: url }),
    })
    const { epoch, cluster, member: name } = member.status
    const data = resolve(options.data)
    if (options.json === true) printJson({ url: server.url, data, epoch, cluster, member: name, pid: process.pid })
    else print(`leasehold is ready on ${server.url} (data in ${data}, epoch ${epoch})`)
    await Promise.race([stopping.asked, failed(member)])
  } finally {
    const limit = setTimeout(() => process.exit(1), STOP_LIMIT_MS)
    await server?.close()
    await new Promise<void>((done) => member.stop(done))
    clearTimeout(limit)
    stopping.close()
  }
}

/** An epoch is only for an empty service: later it is raised by restoring a backup. */
function checkEpoch(status: MemberStatus, epoch: number | undefined): void {
  if (epoch === undefined || epoch <= status.epoch) return
  throw new InvalidError(
    `this data folder is in epoch ${status.epoch}, and --epoch ${epoch} is only for an empty one`,
    {
      hint: 'leave --epoch out; an epoch is raised by restoring a backup',
    },
  )
}

/** Resolves when the member serves linearizable reads. */
async function ready(member: Member): Promise<void> {
  const end = performance.now() + READY_LIMIT_MS
  for (;;) {
    const ok = await new Promise<boolean>((done) => member.read((view) => done(!('refused' in view))))
    if (ok) return
    if (member.status.failure !== undefined) throw new StorageError(member.status.failure)
    if (performance.now() > end) throw new UnavailableError('the member has no leader', { code: 'no-quorum' })
    await new Promise((done) => setTimeout(done, READY_RETRY_MS))
  }
}

/** Rejects when the member stops by itself. */
function failed(member: Member): Promise<never> {
  return new Promise((_, reject) => {
    member.onStatus(({ role, failure }) => {
      if (role === 'stopped' && failure !== undefined) reject(new StorageError(failure))
    })
  })
}

/** The signals that stop the service; a second one does not wait. */
class Stopping {
  readonly asked: Promise<void>
  #signals = 0
  #resolve: () => void = () => {}
  readonly #handler = () => {
    this.#signals += 1
    if (this.#signals > 1) process.exit(EXIT_IMPATIENT)
    this.#resolve()
  }

  constructor() {
    this.asked = new Promise((resolve) => {
      this.#resolve = resolve
    })
    process.on('SIGINT', this.#handler)
    process.on('SIGTERM', this.#handler)
  }

  close(): void {
    process.off('SIGINT', this.#handler)
    process.off('SIGTERM', this.#handler)
  }
}
