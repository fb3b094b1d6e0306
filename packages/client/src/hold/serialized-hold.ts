import { InvalidError, parseToken } from '@leasehold/core'

const PREFIX = 'leasehold-hold-1'

export interface SerializedHold {
  readonly id: bigint
  readonly secret: string
  readonly persistent: boolean
}

/** A hold as text: what kind it is, its id and its secret. */
export function serializeHold({ id, secret, persistent }: SerializedHold): string {
  return `${PREFIX}.${persistent ? 'persistent' : 'portable'}.${id}.${secret}`
}

/** @throws InvalidError */
export function deserializeHold(text: string): SerializedHold {
  const match =
    typeof text === 'string'
      ? /^leasehold-hold-1\.(persistent|portable)\.(\d{1,19})\.([0-9a-f]{32})$/.exec(text.trim())
      : null
  if (!match) {
    throw new InvalidError('adopt needs the text of hold.serialize()', { hint: `it begins with ${PREFIX}.` })
  }
  return { id: parseToken(match[2] as string), secret: match[3] as string, persistent: match[1] === 'persistent' }
}
