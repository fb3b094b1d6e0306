import type { ConnectionOptions } from 'node:tls'
import { EPOCH_MAX, InvalidError } from '@leasehold/core'

export interface EtcdUrl {
  /** One per member, `http://h1:2379` or `https://…`. */
  readonly endpoints: readonly string[]
  /** The prefix of every key. */
  readonly prefix: string
  readonly tls: ConnectionOptions
  readonly user: string | undefined
  readonly password: string | undefined
  /** The first epoch of a new service. */
  readonly epoch: number
}

const FORM = 'etcd://[user:password@]host[:2379][,host2…][/prefix], or etcd+tls://…'
const PORT = 2379

/**
 * `etcd://user:password@h1,h2:2379,h3/prefix?epoch=7`; with `etcd+tls:` over TLS. All keys begin with the prefix
 * (default `leasehold`) and a slash.
 * @throws InvalidError
 */
export function parseEtcdUrl(url: string, tls: ConnectionOptions = {}): EtcdUrl {
  const match = /^etcd(\+tls)?:\/\/(?:([^@/]*)@)?([^/?@]+)(?:\/([^?]*))?(?:\?(.*))?$/i.exec(url)
  if (match === null) throw new InvalidError('not the URL of an etcd', { hint: FORM })
  const [, secure, login, hosts, prefix, query] = match
  const [user, password] = (login ?? '').split(/:(.*)/s)
  const endpoints = (hosts as string).split(',').map((host) => endpointOf(host.trim(), secure !== undefined))
  return {
    endpoints,
    prefix: `${prefix === undefined || prefix === '' ? 'leasehold' : prefix.replace(/\/+$/, '')}/`,
    tls,
    user: user === undefined || user === '' ? undefined : decodeURIComponent(user),
    password: user === undefined || user === '' ? undefined : decodeURIComponent(password ?? ''),
    epoch: epochOf(query),
  }
}

function endpointOf(host: string, secure: boolean): string {
  try {
    const parsed = new URL(`http://${host}`)
    if (parsed.hostname === '' || parsed.pathname !== '/') throw new Error('no host')
    return `${secure ? 'https' : 'http'}://${parsed.hostname}:${/:\d+$/.test(host) ? host.split(':').at(-1) : PORT}`
  } catch (cause) {
    throw new InvalidError(`not a host: ${JSON.stringify(host.slice(0, 80))}`, { hint: FORM, cause })
  }
}

function epochOf(query: string | undefined): number {
  const parameters = new URLSearchParams(query ?? '')
  for (const name of parameters.keys()) {
    if (name !== 'epoch') throw new InvalidError(`no parameter ${JSON.stringify(name.slice(0, 40))}`, { hint: FORM })
  }
  const text = parameters.get('epoch') ?? '1'
  const epoch = Number(text)
  if (!/^\d+$/.test(text) || epoch < 1 || epoch > EPOCH_MAX) throw new InvalidError(`an epoch is 1 to ${EPOCH_MAX}`)
  return epoch
}
