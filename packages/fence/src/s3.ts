import { InvalidError } from '@leasehold/core'
import { type CasGuard, type CasOptions, fence as fenceCas } from './cas.js'
import type { S3Client } from './s3/client.js'
import { s3Store } from './s3/store.js'

export { bucketPolicy, type BucketPolicyOptions } from './s3/policy.js'
export type { S3Client } from './s3/client.js'
export { s3Store } from './s3/store.js'

export interface S3GuardOptions extends CasOptions {
  readonly bucket: string
  /** Prefix of the objects' keys, before the resource. Default: none. */
  readonly prefix?: string
}

/**
 * A guard for objects in S3, or in a store with S3's API and conditional writes. Each change is a PutObject with `If-Match` or
 * `If-None-Match: *`. Mark and value are both in the object's body, because the ETag covers the body but not the metadata.
 *
 * @example
 * const guard = fence(new S3({ region: 'eu-central-1' }), { bucket: 'invoices' })
 * await guard.with(hold, async (object) => object.put(next(object.get())))
 */
export function fence(s3: S3Client, options: S3GuardOptions): CasGuard {
  if (typeof options?.bucket !== 'string' || options.bucket === '') {
    throw new InvalidError('a guard for S3 needs the name of a bucket')
  }
  return fenceCas(s3Store(s3, options), options)
}
