import type { Logger } from '@leasehold/replica'
import type { AcquireService } from './acquire-service.js'
import type { AccessControl, AuditLog, ClientQuotas } from '../security/index.js'
import type { EventStreams } from './event-streams.js'
import type { ClusterAdmin } from '../peers/index.js'
import type { ReplicaClient } from '../replica-client.js'
import type { Metrics } from '../observability/index.js'
import type { SessionRegistry } from './session-registry.js'

/** Everything that request handlers share. */
export interface Services {
  readonly replica: ReplicaClient
  readonly sessions: SessionRegistry
  readonly acquires: AcquireService
  readonly eventStreams: EventStreams
  /** Undefined for a service of one member. */
  readonly cluster: ClusterAdmin | undefined
  readonly backups: { inProgress: number }
  readonly log: Logger
  readonly access: AccessControl
  readonly quotas: ClientQuotas
  readonly metrics: Metrics
  /** Whether clients need a TLS certificate that one of the configured authorities signed. */
  readonly requiresCertificates: boolean
  readonly audit: AuditLog | undefined
  /** The URL of this server for clients. */
  readonly url: string
  /** Set to true once, when the server stops. */
  stopping: boolean
}
