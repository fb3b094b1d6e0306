import type { Logger } from '@leasehold/replica'
import type { AcquireService } from './acquire-service.js'
import type { AccessControl, AuditLog, ClientQuotas } from '../security/index.js'
import type { EventStreams } from './event-streams.js'
import type { ClusterAdmin } from '../peers/index.js'
import type { ReplicaClient } from '../replica-client.js'
import type { Metrics } from '../observability/index.js'
import type { SessionRegistry } from './session-registry.js'

/** What the routes share. */
export interface Services {
  readonly replica: ReplicaClient
  readonly sessions: SessionRegistry
  readonly acquires: AcquireService
  readonly streams: EventStreams
  /** Of a member of a cluster. */
  readonly cluster: ClusterAdmin | undefined
  readonly backups: { underWay: number }
  readonly log: Logger
  readonly access: AccessControl
  readonly clients: ClientQuotas
  readonly metrics: Metrics
  /** Clients need a TLS certificate that one of the given authorities has signed. */
  readonly asksForCertificates: boolean
  readonly audit: AuditLog | undefined
  /** The server's own URL, as clients should use it. */
  readonly url: string
  /** Set once, when the server stops. */
  stopping: boolean
}
