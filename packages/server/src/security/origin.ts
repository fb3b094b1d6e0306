import { isIP } from 'node:net'

/*
 * Browsers let any page send requests to any address. A page of another site must not be able to acquire or steal locks of
 * its visitor, so its requests are rejected by their Origin, by Sec-Fetch-Site, and by their Host, which reveals a page
 * under a foreign name that resolves to this service (DNS rebinding). With credentials, such a page has no key.
 */

export interface OriginRules {
  /**
   * Which names the Host may have besides IP addresses, localhost and those that the service advertises: `loopback` none,
   * `anonymous` names without a dot, which no foreign domain can have, `any` all (credentials are required).
   */
  readonly hosts: 'loopback' | 'anonymous' | 'any'
  /** Origins (`https://app.example:8443`) whose pages may use the service. */
  readonly allowed: readonly string[]
  /** Current origins of the cluster members: the console of one member also sends requests to the others. */
  readonly members?: () => readonly string[]
  /** Host of the advertised URL, with its port; '' without one. */
  readonly advertisedHost: string
}

export interface OriginHeaders {
  readonly host: string | undefined
  readonly origin: string | undefined
  readonly fetchSite: string | undefined
}

/** Why a request is rejected; undefined when it is allowed. */
export function originProblem(headers: OriginHeaders, rules: OriginRules): string | undefined {
  const { host, origin, fetchSite } = headers
  if (host === undefined || host === '') return 'the request has no Host header'
  if (rules.hosts !== 'any' && !isOwnHost(host, rules)) {
    return `the Host ${JSON.stringify(host.slice(0, 80))} is not a name of this service`
  }
  if (origin !== undefined) {
    if (isAllowed(origin, rules)) return undefined
    return originHost(origin) === host.toLowerCase() ? undefined : 'requests from pages of other origins are rejected'
  }
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return 'requests from pages of other sites are rejected'
  }
  return undefined
}

/** Whether pages of another origin may use the service. */
export function isAllowed(origin: string, { allowed, members }: OriginRules): boolean {
  return allowed.includes(origin) || (members?.().includes(origin) ?? false)
}

/** The origins of the URLs; anything that is not an http(s) URL is omitted. */
export function originsOf(urls: readonly string[]): string[] {
  return urls.flatMap((url) => (originHost(url) === undefined ? [] : [new URL(url).origin]))
}

function originHost(origin: string): string | undefined {
  try {
    const { protocol, host } = new URL(origin)
    return protocol === 'http:' || protocol === 'https:' ? host : undefined
  } catch {
    return undefined
  }
}

function isOwnHost(host: string, { hosts, advertisedHost, members }: OriginRules): boolean {
  const name = hostName(host)
  if (isIP(name) !== 0 || name === 'localhost' || name.endsWith('.localhost')) return true
  if (hosts === 'anonymous' && name !== '' && !name.includes('.')) return true
  if (advertisedHost !== '' && name === hostName(advertisedHost)) return true
  return members?.().some((origin) => hostName(new URL(origin).host) === name) ?? false
}

/** The name in a Host header, in lower case, without port and brackets. */
function hostName(host: string): string {
  const lower = host.toLowerCase()
  return lower.startsWith('[') ? lower.slice(1, lower.indexOf(']')) : (lower.split(':', 1)[0] as string)
}

/** Whether only this machine can reach an address to listen on. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
