import { InvalidError } from '@leasehold/core'

/** The members of a cluster: name → HOST:PORT. */
export type ClusterList = ReadonlyMap<string, string>

/** Parses `n1=HOST:PORT,n2=…`. @throws InvalidError */
export function parseClusterList(text: string): Map<string, string> {
  const list = new Map<string, string>()
  for (const part of text.split(',')) {
    const at = part.indexOf('=')
    const name = part.slice(0, at).trim()
    const address = part.slice(at + 1).trim()
    if (at < 1 || address === '')
      throw new InvalidError(`a cluster is listed as n1=HOST:PORT,n2=HOST:PORT, not ${JSON.stringify(part)}`)
    if (list.has(name)) throw new InvalidError(`the member ${name} is listed twice`)
    list.set(name, address)
  }
  return list
}

/** The list as text that is equal for equal lists, whatever their order. */
export function canonicalList(list: ClusterList): string {
  return [...list]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, address]) => `${name}=${address}`)
    .join(',')
}
