import type { Socket } from 'node:net'
import { checkServerIdentity, type PeerCertificate, TLSSocket } from 'node:tls'
import { InvalidError } from '@leasehold/core'
import { parseAddress } from './address.js'

/** Extended key usage "TLS server", RFC 5280 4.2.1.12: members are servers for each other, clients are not. */
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
const NAMES_MAX = 64

/** A name or address, or `*.` and a domain: exactly one label more. */
const PATTERN = /^(?:\*\.)?[^*,\s]+$/

/** Parses `--peer-tls-allowed-names`: names separated by commas. @throws InvalidError */
export function parseAllowedNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !PATTERN.test(name))
  if (wrong !== undefined || names.length > NAMES_MAX) {
    throw new InvalidError(
      wrong === undefined ? `more than ${NAMES_MAX} allowed names` : `${JSON.stringify(wrong)} is not a name`,
      { hint: 'names of members, separated by commas, such as n1.example,n2.example or *.members.example' },
    )
  }
  return names
}

/**
 * Decides whether the other end of a connection is a member, by the names in its certificate. Without TLS every connection
 * passes: the network has to keep others away.
 */
export class PeerIdentity {
  readonly #allowed: readonly string[] | undefined
  /** Hosts of the configured list; hosts of the present members come with each call. */
  readonly #listed: ReadonlySet<string>

  /** `listed`: peer addresses from `--cluster`. `allowed`: see {@link parseAllowedNames}; undefined: no further limit. */
  constructor(listed: Iterable<string> = [], allowed?: readonly string[]) {
    this.#listed = hostsOf(listed)
    this.#allowed = allowed
  }

  /** Why the caller is not a member, given the addresses of the present members; undefined if it is one. */
  problemOfCaller(socket: Socket, members: Iterable<string>): string | undefined {
    const cert = certificateOf(socket)
    if (cert === undefined) return undefined
    const general = this.#generalProblem(cert)
    if (general !== undefined) return general
    const hosts = new Set([...this.#listed, ...hostsOf(members)])
    if (this.#allowed !== undefined || [...hosts].some((host) => isFor(cert, host))) return undefined
    return `its certificate is for ${namesOf(cert)}, not for a member of this cluster`
  }

  /** Why the caller is not the member at `address`; undefined if it is. */
  problemOfMember(socket: Socket, address: string): string | undefined {
    const cert = certificateOf(socket)
    if (cert === undefined) return undefined
    const [host] = hostsOf([address])
    if (host === undefined || !isFor(cert, host)) {
      return `its certificate is for ${namesOf(cert)}, and it claims to be the member at ${address.slice(0, 100)}`
    }
    return this.#generalProblem(cert)
  }

  #generalProblem(cert: PeerCertificate): string | undefined {
    const usages = cert.ext_key_usage as readonly string[] | undefined
    if (usages !== undefined && !usages.includes(SERVER_AUTH)) {
      return `its certificate is for clients (extended key usage), as issued to ${namesOf(cert)}`
    }
    if (this.#allowed?.some((name) => isFor(cert, name)) === false) {
      return `its certificate is for ${namesOf(cert)}, which --peer-tls-allowed-names does not allow`
    }
    return undefined
  }
}

function certificateOf(socket: Socket): PeerCertificate | undefined {
  return socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined
}

/** Whether a certificate is valid for a host, or for some name below a pattern `*.DOMAIN`. */
function isFor(cert: PeerCertificate, host: string): boolean {
  if (!host.startsWith('*.')) return checkServerIdentity(host, cert) === undefined
  const domain = host.slice(1).toLowerCase()
  return dnsNames(cert).some((name) => {
    const label = name.toLowerCase().slice(0, -domain.length)
    return name.toLowerCase().endsWith(domain) && label !== '' && !label.includes('.')
  })
}

function dnsNames(cert: PeerCertificate): string[] {
  return [...(cert.subjectaltname ?? '').matchAll(/DNS:([^,\s"]+)/g)].map(([, name]) => name as string)
}

/** The names of a certificate, for messages. */
function namesOf(cert: PeerCertificate): string {
  const names = (cert.subjectaltname ?? '').slice(0, 200)
  return names === '' ? `CN=${String(cert.subject?.CN ?? '').slice(0, 100)} without alternative names` : names
}

function hostsOf(addresses: Iterable<string>): Set<string> {
  const hosts = new Set<string>()
  for (const address of addresses) {
    try {
      hosts.add(parseAddress(address).host)
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error
    }
  }
  return hosts
}
