import { InvalidError } from '@leasehold/core'

export interface Address {
  readonly host: string
  readonly port: number
}

/** `HOST:PORT`, also `[::1]:PORT`. @throws InvalidError */
export function parseAddress(text: string, what = 'an address'): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) {
    throw new InvalidError(`${what} is HOST:PORT, not ${JSON.stringify(text.slice(0, 100))}`)
  }
  return { host: (match[1] ?? match[2]) as string, port }
}
