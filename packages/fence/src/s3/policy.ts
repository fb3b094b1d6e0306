import { InvalidError } from '@leasehold/core'

export interface BucketPolicyOptions {
  readonly bucket: string
  /** Prefix of the protected keys. Default: the whole bucket. */
  readonly prefix?: string
  /** `aws`, or `aws-cn`, `aws-us-gov`. */
  readonly partition?: string
}

/**
 * Returns a bucket policy that denies every principal writes without a condition, and deletions: an unconditional PutObject
 * would overwrite the mark, a deletion would lose it. Parts of multipart uploads carry no condition; their completion does.
 * Under such a policy S3 rejects CopyObject.
 * Source: Amazon S3 User Guide, "Enforce conditional writes on Amazon S3 buckets".
 */
export function bucketPolicy(options: BucketPolicyOptions): string {
  const { bucket, prefix = '', partition = 'aws' } = options
  if (typeof bucket !== 'string' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw new InvalidError(`not the name of a bucket: ${JSON.stringify(bucket)}`)
  }
  if (/[*?$]/.test(prefix)) throw new InvalidError('a prefix in a policy has no *, ? or $')
  const Resource = `arn:${partition}:s3:::${bucket}/${prefix}*`
  const deny = { Effect: 'Deny', Principal: '*' }
  const policy = {
    Version: '2012-10-17',
    Statement: [
      {
        Sid: 'LeaseholdConditionalWritesOnly',
        ...deny,
        Action: 's3:PutObject',
        Resource,
        Condition: {
          Null: { 's3:if-match': 'true', 's3:if-none-match': 'true' },
          Bool: { 's3:ObjectCreationOperation': 'true' },
        },
      },
      { Sid: 'LeaseholdKeepMarks', ...deny, Action: ['s3:DeleteObject', 's3:DeleteObjectVersion'], Resource },
    ],
  }
  return `${JSON.stringify(policy, null, 2)}\n`
}
