import { AccessError, InvalidError } from '@leasehold/core'
import { messageOf } from '../common/errors.js'
import type { SdkError } from './client.js'

export function nameOf(error: unknown): string | undefined {
  return (error as SdkError | null)?.name
}

function statusOf(error: unknown): number | undefined {
  return (error as SdkError | null)?.$metadata?.httpStatusCode
}

export function attemptsOf(error: unknown): number {
  return (error as SdkError | null)?.$metadata?.attempts ?? 1
}

/** Whether the store rejected the condition. 412: another version; 409: a concurrent write; 404: the object was deleted. */
export function isRefusal(error: unknown): boolean {
  const status = statusOf(error)
  if (status === 412) return true
  if (status === 409) return nameOf(error) === 'ConditionalRequestConflict' || nameOf(error) === 'OperationAborted'
  return status === 404 && nameOf(error) === 'NoSuchKey'
}

/** Maps permanent failures to typed errors. All others pass unchanged: the write may have taken effect. */
export function explain(error: unknown, bucket: string): unknown {
  const what = `S3 rejects the request: ${nameOf(error)}: ${messageOf(error)}`
  switch (statusOf(error)) {
    case 401:
      return new AccessError(what, { cause: error })
    case 403:
      return new AccessError(what, {
        code: 'forbidden',
        cause: error,
        hint: 'the guard needs s3:GetObject and s3:PutObject, and s3:ListBucket to distinguish missing objects from forbidden ones',
      })
    case 404:
      return new InvalidError(what, { cause: error, hint: `is ${JSON.stringify(bucket)} the name of the bucket?` })
    case 400:
    case 411:
    case 501:
      return new InvalidError(what, {
        cause: error,
        hint: 'the store must support If-Match and If-None-Match for PutObject',
      })
    default:
      return error
  }
}
