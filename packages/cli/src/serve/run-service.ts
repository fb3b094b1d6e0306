import { resolve } from 'node:path'
import { formatToken, InvalidError, StorageError, UnavailableError } from '@leasehold/core'
import type { Logger, MemberStatus } from '@leasehold/replica'
import { DamagedError, openNodeReplica } from '@leasehold/replica/node'
import {
  checkListen,
  checkDataNotLost,
  createLogger,
  createServer,
  quarantineFolder,
  type LeaseholdServer,
} from '@leasehold/server'
import { checkCluster, type ClusterPlace, joinCluster } from './join-cluster.js'
import type { ServeOptions } from './options.js'
import { checkExposure, checkFiles, securityOf } from './security.js'
import { print, printJson } from '../output.js'

type Member = Awaited<ReturnType<typeof openNodeReplica>>

const READY_LIMIT_MS = 30_000
const READY_RETRY_MS = 50
/** A stop that takes longer than this is given up: the log is durable anyway. */
const STOP_LIMIT_MS = 15_000
const EXIT_IMPATIENT = 130

/** Everything that can be known before a start. @throws InvalidError, AccessError */
export async function checkServe(options: ServeOptions): Promise<void> {
  const security = securityOf(options)
  checkExposure(options, security)
  checkFiles(security)
  if (options.cluster !== undefined) checkCluster(options)
}

/** Runs the service until a signal stops it. Throws when it cannot start, or when the member stops by itself. */
export async function serve(options: ServeOptions): Promise<void> {
  const fsyncs = new Relay()
  const log = createLogger({ level: options.logLevel })
  const stopping = new Stopping()
  const url = options.advertiseUrl ?? (options.cluster === undefined ? undefined : urlOf(options))
  const security = securityOf(options)
  checkExposure(options, security)
  let place: ClusterPlace | undefined
  let member: Member | undefined
  let server: LeaseholdServer | undefined
  try {
    // Before there is a data folder that nobody has asked for.
    await checkListen(options.listen)
    ;({ place, member } = await begin({ ...options, synced: fsyncs.tell }, url, log, stopping.signal))
    checkEpoch(member.status, options.epoch)
    if (place === undefined) {
      checkAlone(member)
      await ready(member)
    }
    server = await createServer({
      member,
      ...(place === undefined ? {} : { cluster: member }),
      logger: log,
      listen: options.listen,
      allowAnonymous: options.allowAnonymous === true,
      allowedOrigins: options.allowOrigins ?? [],
      ...security,
      fsyncs: (observe) => fsyncs.to(observe),
      ...(place === undefined ? {} : { dialer: place.peers.dialer }),
      ...(url === undefined ? {} : { advertiseUrl: url }),
    })
    const { epoch, cluster, member: name } = member.status
    const data = resolve(options.data)
    const { bootstrappedAbove: foundedAbove } = member
    if (foundedAbove !== undefined) {
      log.info('a new service was founded', { cluster, epoch, tokensAbove: formatToken(foundedAbove), data })
    }
    if (place !== undefined) await Promise.race([hasLeader(member), stopping.asked, failed(member)])
    if (options.json === true) {
      const founded = foundedAbove === undefined ? {} : { founded: { tokensAbove: formatToken(foundedAbove) } }
      printJson({ url: server.url, data, epoch, cluster, member: name, pid: process.pid, ...founded })
    } else {
      if (foundedAbove !== undefined) print(`founded a new service in ${data}; its tokens start above ${foundedAbove}`)
      const who = place === undefined ? '' : `, member ${name} of cluster ${cluster.slice(0, 8)}`
      print(`leasehold is ready on ${server.url} (data in ${data}, epoch ${epoch}${who})`)
    }
    await Promise.race([stopping.asked, failed(member)])
  } finally {
    const limit = setTimeout(() => process.exit(1), STOP_LIMIT_MS)
    if (member !== undefined && place !== undefined) await handOver(member)
    await server?.close()
    if (member !== undefined) await stopped(member)
    await place?.peers.close()
    clearTimeout(limit)
    stopping.close()
  }
}

type BeginOptions = ServeOptions & { readonly synced: (seconds: number) => void }

/** The member begins before the server that counts its writes. */
class Relay {
  #observe: (seconds: number) => void = () => {}
  readonly tell = (seconds: number): void => this.#observe(seconds)

  to(observe: (seconds: number) => void): void {
    this.#observe = observe
  }
}

/** Opens the data folder, and takes the place in the cluster. With `--repair`, a damaged folder is given up for that. */
async function begin(options: BeginOptions, url: string | undefined, log: Logger, signal: AbortSignal) {
  if (options.repair === true && options.cluster === undefined) {
    throw new InvalidError('--repair is for a member of a cluster', {
      hint: 'a service of one has nobody to get its data from: restore a backup',
    })
  }
  try {
    return await open(options, url, log, signal)
  } catch (error) {
    if (options.repair !== true || !(error instanceof DamagedError)) throw error
    const aside = await quarantineFolder(options.data)
    log.warn('the data folder is damaged, and was moved aside: everything comes from the other members', {
      why: error.message,
      aside,
    })
    return await open(options, url, log, signal)
  }
}

async function open(options: BeginOptions, url: string | undefined, log: Logger, signal: AbortSignal) {
  const place = options.cluster === undefined ? undefined : await joinCluster(options, url as string, log, signal)
  if (place === undefined) checkDataNotLost(options.data)
  let member: Member | undefined
  try {
    member = await openNodeReplica({
      dir: options.data,
      log,
      takeOver: options.takeOver === true,
      synced: options.synced,
      ...(options.epoch === undefined ? {} : { epoch: options.epoch }),
      ...(options.tokenStart === undefined ? {} : { floor: options.tokenStart, clockFloors: false }),
      ...(url === undefined ? {} : { url }),
      ...place?.replica,
    })
    await place?.began(member)
    return { place, member }
  } catch (error) {
    if (member !== undefined) await stopped(member)
    await place?.peers.close()
    throw error
  }
}

function stopped(member: Member): Promise<void> {
  return new Promise((done) => member.stop(done))
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

/** A member of several cannot lead alone. @throws InvalidError */
function checkAlone(member: Member): void {
  const others = member.members.filter(({ name }) => name !== member.status.member)
  if (others.length === 0) return
  const { member: name } = member.status
  const peer = member.members.find((one) => one.name === name)?.peer ?? 'HOST:PORT'
  const list = member.members.map((one) => `${one.name}=${one.peer}`).join(',')
  throw new InvalidError(`this data folder belongs to ${name}, one of ${others.length + 1} members of a cluster`, {
    hint: `start it with --name ${name} --peer-listen ${peer} --cluster ${list}`,
  })
}

/** Resolves when the member serves linearizable reads. */
async function ready(member: Member): Promise<void> {
  const end = performance.now() + READY_LIMIT_MS
  for (;;) {
    const ok = await new Promise<boolean>((done) => member.read((view) => done(!('refused' in view))))
    if (ok) return
    const failure = failureOf(member.status)
    if (failure !== undefined) throw failure
    if (performance.now() > end) throw new UnavailableError('the member has no leader', { code: 'no-quorum' })
    await new Promise((done) => setTimeout(done, READY_RETRY_MS))
  }
}

function urlOf({ listen: { host, port }, tlsCert }: ServeOptions): string {
  if (port === 0) throw new InvalidError('a member of a cluster listens on a port of its own, not on 0')
  return `http${tlsCert === undefined ? '' : 's'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Resolves when some member leads. */
function hasLeader(member: Member): Promise<void> {
  return new Promise((resolve) => {
    if (member.status.leader !== '') return resolve()
    const off = member.onStatus(({ leader }) => {
      if (leader === '') return
      off()
      resolve()
    })
  })
}

const HAND_OVER_LIMIT_MS = 2000

/** A leader that is asked to stop makes the furthest other voter lead first, so that nobody waits for an election. */
async function handOver(member: Member): Promise<void> {
  if (member.status.role !== 'leader') return
  const { member: self } = member.status
  const others = member.members.filter(
    ({ name, role, match }) => name !== self && role === 'voter' && match !== undefined,
  )
  const [next] = others.sort((a, b) => (b.match ?? 0) - (a.match ?? 0))
  if (next === undefined) return
  member.transferLeadership(next.name)
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, HAND_OVER_LIMIT_MS)
    const off = member.onStatus(({ role }) => {
      if (role === 'leader') return
      clearTimeout(timer)
      off()
      resolve()
    })
  })
}

/** Rejects when the member stops by itself. */
function failed(member: Member): Promise<never> {
  return new Promise((_, reject) => {
    const tell = (status: MemberStatus): void => {
      const failure = failureOf(status)
      if (status.role === 'stopped' && failure !== undefined) reject(failure)
    }
    member.onStatus(tell)
    // It may have stopped before anybody listened.
    tell(member.status)
  })
}

function failureOf({ failure, failureHint }: MemberStatus): StorageError | undefined {
  return failure === undefined
    ? undefined
    : new StorageError(failure, failureHint === undefined ? {} : { hint: failureHint })
}

/** The signals that stop the service; a second one does not wait. */
class Stopping {
  readonly asked: Promise<void>
  #signals = 0
  #resolve: () => void = () => {}
  readonly #controller = new AbortController()
  readonly #handler = () => {
    this.#signals += 1
    if (this.#signals > 1) process.exit(EXIT_IMPATIENT)
    this.#controller.abort()
    this.#resolve()
  }

  /** Aborts with the first signal: for what waits before the service is up. */
  get signal(): AbortSignal {
    return this.#controller.signal
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
