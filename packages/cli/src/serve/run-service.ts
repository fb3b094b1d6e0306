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
import { checkCluster, type JoinedCluster, joinCluster } from './join-cluster.js'
import type { ServeOptions } from './options.js'
import { checkExposure, checkFiles, securityOf } from './security.js'
import { print, printJson } from '../output.js'

type Member = Awaited<ReturnType<typeof openNodeReplica>>

const READY_LIMIT_MS = 30_000
const READY_RETRY_MS = 50
/** Bound on a clean stop. After it, the process exits: the log is durable. */
const STOP_LIMIT_MS = 15_000
const EXIT_IMPATIENT = 130

/** Checks everything that can be checked without a start. @throws InvalidError, AccessError */
export async function checkServe(options: ServeOptions): Promise<void> {
  const security = securityOf(options)
  checkExposure(options, security)
  checkFiles(security)
  if (options.cluster !== undefined) checkCluster(options)
}

/** Runs the service until a signal stops it. Throws if it cannot start, or if the member stops because of a failure. */
export async function serve(options: ServeOptions): Promise<void> {
  const fsyncs = new FsyncRelay()
  const log = createLogger({ level: options.logLevel })
  const stopping = new Stopping()
  const url = options.advertiseUrl ?? (options.cluster === undefined ? undefined : urlOf(options))
  const security = securityOf(options)
  checkExposure(options, security)
  let joined: JoinedCluster | undefined
  let member: Member | undefined
  let server: LeaseholdServer | undefined
  try {
    // First, so that a taken port leaves no new data folder behind.
    await checkListen(options.listen)
    ;({ joined, member } = await start({ ...options, synced: fsyncs.record }, url, log, stopping.signal))
    checkEpoch(member.status, options.epoch)
    if (joined === undefined) {
      checkAlone(member)
      await ready(member)
    }
    server = await createServer({
      member,
      ...(joined === undefined ? {} : { cluster: member }),
      logger: log,
      listen: options.listen,
      allowAnonymous: options.allowAnonymous === true,
      allowedOrigins: options.allowOrigins ?? [],
      ...security,
      fsyncs: (observe) => fsyncs.connect(observe),
      ...(joined === undefined ? {} : { dialer: joined.peers.dialer }),
      ...(url === undefined ? {} : { advertiseUrl: url }),
    })
    logFounded(log, member, options)
    if (joined !== undefined) await Promise.race([hasLeader(member), stopping.asked, failed(member)])
    printReady(server.url, member, options)
    await Promise.race([stopping.asked, failed(member)])
  } finally {
    const limit = setTimeout(() => process.exit(1), STOP_LIMIT_MS)
    if (member !== undefined && joined !== undefined) await handOver(member)
    await server?.close()
    if (member !== undefined) await stopped(member)
    await joined?.peers.close()
    clearTimeout(limit)
    stopping.close()
  }
}

function logFounded(log: Logger, { status, bootstrappedAbove }: Member, { data }: ServeOptions): void {
  if (bootstrappedAbove === undefined) return
  const { cluster, epoch } = status
  log.info('a new service was founded', {
    cluster,
    epoch,
    tokensAbove: formatToken(bootstrappedAbove),
    data: resolve(data),
  })
}

/** Prints the ready line. */
function printReady(url: string, { status, bootstrappedAbove }: Member, options: ServeOptions): void {
  const { epoch, cluster, member } = status
  const data = resolve(options.data)
  if (options.json === true) {
    const founded = bootstrappedAbove === undefined ? {} : { founded: { tokensAbove: formatToken(bootstrappedAbove) } }
    return printJson({ url, data, epoch, cluster, member, pid: process.pid, ...founded })
  }
  if (bootstrappedAbove !== undefined)
    print(`founded a new service in ${data}; its tokens start above ${bootstrappedAbove}`)
  const place = options.cluster === undefined ? '' : `, member ${member} of cluster ${cluster.slice(0, 8)}`
  print(`leasehold is ready on ${url} (data in ${data}, epoch ${epoch}${place})`)
}

type StartOptions = ServeOptions & { readonly synced: (seconds: number) => void }

/** Passes fsync times from the member to the server, which is created later. */
class FsyncRelay {
  #observe: (seconds: number) => void = () => {}
  readonly record = (seconds: number): void => this.#observe(seconds)

  connect(observe: (seconds: number) => void): void {
    this.#observe = observe
  }
}

/** Opens the data folder, and joins the cluster. With `--repair`, a damaged folder is quarantined first. */
async function start(options: StartOptions, url: string | undefined, log: Logger, signal: AbortSignal) {
  if (options.repair === true && options.cluster === undefined) {
    throw new InvalidError('--repair is for a member of a cluster', {
      hint: 'a service of one has no other members to get its data from: restore a backup',
    })
  }
  try {
    return await open(options, url, log, signal)
  } catch (error) {
    if (options.repair !== true || !(error instanceof DamagedError)) throw error
    const aside = await quarantineFolder(options.data)
    log.warn('the data folder is damaged and was moved aside: the member gets its data from the other members', {
      why: error.message,
      aside,
    })
    return await open(options, url, log, signal)
  }
}

async function open(options: StartOptions, url: string | undefined, log: Logger, signal: AbortSignal) {
  const joined = options.cluster === undefined ? undefined : await joinCluster(options, url as string, log, signal)
  if (joined === undefined) checkDataNotLost(options.data)
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
      ...joined?.replica,
    })
    await joined?.started(member)
    return { joined, member }
  } catch (error) {
    if (member !== undefined) await stopped(member)
    await joined?.peers.close()
    throw error
  }
}

function stopped(member: Member): Promise<void> {
  return new Promise((done) => member.stop(done))
}

/** Refuses `--epoch` for a service with data: its epoch is raised by restoring a backup. */
function checkEpoch(status: MemberStatus, epoch: number | undefined): void {
  if (epoch === undefined || epoch <= status.epoch) return
  throw new InvalidError(
    `this data folder is in epoch ${status.epoch}, and --epoch ${epoch} is only for an empty one`,
    {
      hint: 'leave --epoch out; an epoch is raised by restoring a backup',
    },
  )
}

/** Refuses to start a member of a cluster without its peers. @throws InvalidError */
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

/** Waits until the member serves linearizable reads. */
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
  if (port === 0) throw new InvalidError('a member of a cluster needs a fixed port, not 0')
  return `http${tlsCert === undefined ? '' : 's'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Waits until the cluster has a leader. */
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

/** Transfers leadership to the most up-to-date voter before a stop, so that the cluster needs no election timeout. */
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

/** Rejects when the member stops because of a failure. */
function failed(member: Member): Promise<never> {
  return new Promise((_, reject) => {
    const check = (status: MemberStatus): void => {
      const failure = failureOf(status)
      if (status.role === 'stopped' && failure !== undefined) reject(failure)
    }
    member.onStatus(check)
    // The member may have stopped already.
    check(member.status)
  })
}

function failureOf({ failure, failureHint }: MemberStatus): StorageError | undefined {
  return failure === undefined
    ? undefined
    : new StorageError(failure, failureHint === undefined ? {} : { hint: failureHint })
}

/** Stops the service on the first signal, and exits at once on the second. */
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

  /** Aborts with the first signal, for waits during the start. */
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
