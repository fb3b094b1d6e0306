import type { Schema } from './protobuf.js'

/** The messages of etcd's API v3 that are used here, with the field numbers of its `rpc.proto` and `kv.proto`. */

export interface Header {
  readonly clusterId: bigint
  readonly revision: number
  readonly raftTerm: number
}

export interface KeyValue {
  readonly key: Buffer
  readonly createRevision: number
  readonly modRevision: number
  readonly value: Buffer
  readonly lease: bigint
}

export interface RangeRequest {
  readonly key: Uint8Array
  readonly rangeEnd?: Uint8Array
  readonly limit?: number
  readonly revision?: number
  /** 2: descending. */
  readonly sortOrder?: number
  /** 2: by create revision. */
  readonly sortTarget?: number
  readonly serializable?: boolean
  readonly keysOnly?: boolean
  readonly minCreateRevision?: number
  readonly maxCreateRevision?: number
}

export interface RangeResponse {
  readonly header: Header
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
}

export interface PutRequest {
  readonly key: Uint8Array
  readonly value?: Uint8Array
  readonly lease?: bigint
  readonly ignoreLease?: boolean
}

export interface DeleteRequest {
  readonly key: Uint8Array
  readonly rangeEnd?: Uint8Array
}

export type Op =
  | { readonly range: RangeRequest }
  | { readonly put: PutRequest }
  | { readonly delete: DeleteRequest }
  | { readonly txn: TxnRequest }

export interface Compare {
  readonly result: 0 | 1 | 2 | 3
  /** 1: create revision, 2: mod revision, 3: value. */
  readonly target: 1 | 2 | 3
  readonly key: Uint8Array
  readonly rangeEnd?: Uint8Array
  readonly createRevision?: number
  readonly modRevision?: number
  readonly value?: Uint8Array
}

export interface TxnRequest {
  readonly compare: readonly Compare[]
  readonly success: readonly Op[]
  readonly failure: readonly Op[]
}

export interface OpResponse {
  readonly range?: RangeResponse
  readonly delete?: { readonly deleted: number }
  readonly txn?: TxnResponse
}

export interface TxnResponse {
  readonly header: Header
  readonly succeeded: boolean
  readonly responses: readonly OpResponse[]
}

export interface WatchEventMessage {
  /** 0: put, 1: delete. */
  readonly type: number
  readonly kv: KeyValue
  readonly prevKv?: KeyValue
}

export interface WatchResponse {
  readonly header: Header
  readonly watchId: number
  readonly created: boolean
  readonly canceled: boolean
  readonly compactRevision: number
  readonly cancelReason: string
  readonly events: readonly WatchEventMessage[]
}

export interface LeaseAnswer {
  readonly header: Header
  readonly id: bigint
  readonly ttl: number
}

const header: Schema = { clusterId: [1, 'big'], revision: [3, 'int'], raftTerm: [4, 'int'] }
const keyValue: Schema = {
  key: [1, 'bytes'],
  createRevision: [2, 'int'],
  modRevision: [3, 'int'],
  value: [5, 'bytes'],
  lease: [6, 'big'],
}
const range: Schema = {
  key: [1, 'bytes'],
  rangeEnd: [2, 'bytes'],
  limit: [3, 'int'],
  revision: [4, 'int'],
  sortOrder: [5, 'int'],
  sortTarget: [6, 'int'],
  serializable: [7, 'bool'],
  keysOnly: [8, 'bool'],
  minCreateRevision: [12, 'int'],
  maxCreateRevision: [13, 'int'],
}
const rangeAnswer: Schema = { header: [1, header], kvs: [2, [keyValue]], more: [3, 'bool'] }
const put: Schema = { key: [1, 'bytes'], value: [2, 'bytes'], lease: [3, 'big'], ignoreLease: [6, 'bool'] }
const del: Schema = { key: [1, 'bytes'], rangeEnd: [2, 'bytes'] }
const compare: Schema = {
  result: [1, 'int'],
  target: [2, 'int'],
  key: [3, 'bytes'],
  createRevision: [5, 'int'],
  modRevision: [6, 'int'],
  value: [7, 'bytes'],
  rangeEnd: [64, 'bytes'],
}
const txn: Record<string, readonly [number, Schema | readonly [Schema]]> = {}
const op: Schema = { range: [1, range], put: [2, put], delete: [3, del], txn: [4, txn] }
txn.compare = [1, [compare]]
txn.success = [2, [op]]
txn.failure = [3, [op]]
const txnAnswer: Record<string, readonly [number, 'bool' | Schema | readonly [Schema]]> = {}
const opAnswer: Schema = {
  range: [1, rangeAnswer],
  delete: [3, { deleted: [2, 'int'] }],
  txn: [4, txnAnswer],
}
txnAnswer.header = [1, header]
txnAnswer.succeeded = [2, 'bool']
txnAnswer.responses = [3, [opAnswer]]
const leaseAnswer: Schema = { header: [1, header], id: [2, 'big'], ttl: [3, 'int'] }
const leaseId: Schema = { id: [1, 'big'] }
const event: Schema = { type: [1, 'int'], kv: [2, keyValue], prevKv: [3, keyValue] }

export interface Method {
  readonly path: string
  readonly request: Schema
  readonly answer: Schema
}

export const METHODS = {
  range: { path: '/etcdserverpb.KV/Range', request: range, answer: rangeAnswer },
  txn: { path: '/etcdserverpb.KV/Txn', request: txn, answer: txnAnswer },
  leaseGrant: { path: '/etcdserverpb.Lease/LeaseGrant', request: { ttl: [1, 'int'] }, answer: leaseAnswer },
  leaseRevoke: { path: '/etcdserverpb.Lease/LeaseRevoke', request: leaseId, answer: { header: [1, header] } },
  leaseKeepAlive: { path: '/etcdserverpb.Lease/LeaseKeepAlive', request: leaseId, answer: leaseAnswer },
  leaseTimeToLive: { path: '/etcdserverpb.Lease/LeaseTimeToLive', request: leaseId, answer: leaseAnswer },
  authenticate: {
    path: '/etcdserverpb.Auth/Authenticate',
    request: { name: [1, 'text'], password: [2, 'text'] },
    answer: { token: [2, 'text'] },
  },
  watch: {
    path: '/etcdserverpb.Watch/Watch',
    request: {
      create: [
        1,
        {
          key: [1, 'bytes'],
          rangeEnd: [2, 'bytes'],
          startRevision: [3, 'int'],
          filters: [5, ['int']],
          prevKv: [6, 'bool'],
          watchId: [7, 'int'],
        },
      ],
      cancel: [2, { watchId: [1, 'int'] }],
    },
    answer: {
      header: [1, header],
      watchId: [2, 'int'],
      created: [3, 'bool'],
      canceled: [4, 'bool'],
      compactRevision: [5, 'int'],
      cancelReason: [6, 'text'],
      events: [11, [event]],
    },
  },
} as const satisfies Record<string, Method>
