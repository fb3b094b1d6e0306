import { AccessError, InvalidError } from '@leasehold/core'
import { asksForCredentials, isLoopback, JwtVerifier, readKeys, readTls, type ServerOptions } from '@leasehold/server'
import type { ServeOptions } from './options.js'

type Security = Pick<ServerOptions, 'keys' | 'jwt' | 'tls' | 'clientLimits' | 'audit'>

/** What the server needs of the settings. @throws InvalidError for settings that belong together and are not */
export function securityOf(options: ServeOptions): Security {
  const { keys, audit, jwtJwks: jwks, jwtIssuer: issuer, jwtAudience: audience } = options
  const { tlsCert: cert, tlsKey: key, tlsClientCa: ca } = options
  together({ '--jwt-jwks': jwks, '--jwt-issuer': issuer, '--jwt-audience': audience })
  together({ '--tls-cert': cert, '--tls-key': key })
  if (ca !== undefined && cert === undefined) throw new InvalidError('--tls-client-ca needs --tls-cert and --tls-key')
  return {
    ...(keys === undefined ? {} : { keys }),
    ...(jwks === undefined || issuer === undefined || audience === undefined
      ? {}
      : { jwt: { jwks, issuer, audience } }),
    ...(cert === undefined || key === undefined ? {} : { tls: { cert, key, ca } }),
    clientLimits: {
      requestsPerSecond: options.limitRequests,
      renewalsPerSecond: options.limitRenewals,
      sessions: options.limitSessions,
      waiters: options.limitWaiters,
    },
    ...(audit === undefined ? {} : { audit }),
  }
}

function together(options: Readonly<Record<string, string | undefined>>): void {
  const missing = Object.keys(options).filter((name) => options[name] === undefined)
  if (missing.length === 0 || missing.length === Object.keys(options).length) return
  throw new InvalidError(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing`, {
    hint: `${Object.keys(options).join(', ')} belong together`,
  })
}

/** Before anything is opened: a service that everybody may use is refused where others reach it. @throws AccessError */
export function checkExposure({ listen, allowAnonymous }: ServeOptions, security: Security): void {
  if (isLoopback(listen.host) || allowAnonymous === true || asksForCredentials(security)) return
  throw new AccessError(`refusing to listen on ${listen.host}: everybody who reaches it could take and steal locks`, {
    code: 'forbidden',
    hint: 'ask for keys (--keys FILE), listen on 127.0.0.1, or allow anonymous access (--allow-anonymous) on a network that you trust',
  })
}

/** @throws InvalidError for a file that cannot be used */
export function checkFiles({ keys, jwt, tls }: Security): void {
  if (keys !== undefined) readKeys(keys)
  if (jwt !== undefined) new JwtVerifier(jwt)
  if (tls !== undefined) readTls(tls)
}
