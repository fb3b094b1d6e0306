import { isIP } from 'node:net'

/*
 * Browsers let any page send requests to 127.0.0.1. A page of another site must not be able to acquire or steal locks of
 * its visitor, so its requests are rejected by their Origin, by Sec-Fetch-Site, and by their Host, which reveals a page
 * under a foreign name that resolves to this machine (DNS rebinding).
 */

export interface OriginRules {
  /** Bound to loopback: the Host must be a name that can only mean this machine. */
  readonly loopback: boolean
  /** Origins (`https://app.example:8443`) whose pages may use the service. */
  readonly allowed: readonly string[]
  /** Current origins of the cluster members: the console of one member also sends requests to the others. */
  readonly members?: () => readonly string[]
  /** Host of the advertised URL; '' without one. */
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
  if (rules.loopback && !isOwnHost(host, rules)) {
    return `the service listens on loopback only, and ${JSON.stringify(host.slice(0, 80))} is not one of its names`
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

function isOwnHost(host: string, rules: OriginRules): boolean {
  const lower = host.toLowerCase()
  if (lower === rules.advertisedHost) return true
  const name = lower.startsWith('[') ? lower.slice(1, lower.indexOf(']')) : (lower.split(':', 1)[0] as string)
  return name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0
}

/** Whether only this machine can reach an address to listen on. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}
