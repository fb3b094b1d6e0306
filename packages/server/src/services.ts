import type { Logger } from '@leasehold/replica'
import type { Acquiring } from './acquiring.js'
import type { AccessControl } from './security/access-control.js'
import type { Audit } from './security/audit.js'
import type { Clients } from './security/clients.js'
import type { EventStreams } from './event-streams.js'
import type { ClusterDesk } from './cluster.js'
import type { Gateway } from './gateway.js'
import type { Metrics } from './metrics.js'
import type { SessionDesk } from './session-desk.js'

/** What the routes share. */
export interface Services {
  readonly gateway: Gateway
  readonly desk: SessionDesk
  readonly acquiring: Acquiring
  readonly streams: EventStreams
  /** Of a member of a cluster. */
  readonly cluster: ClusterDesk | undefined
  readonly backups: { underWay: number }
  readonly log: Logger
  readonly access: AccessControl
  readonly clients: Clients
  readonly metrics: Metrics
  /** Clients need a TLS certificate that one of the given authorities has signed. */
  readonly asksForCertificates: boolean
  readonly audit: Audit | undefined
  /** The server's own URL, as clients should use it. */
  readonly url: string
  /** Set once, when the server stops. */
  stopping: boolean
}
