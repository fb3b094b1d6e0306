import { AccessError, InvalidError } from '@leasehold/core'
import { requiresCredentials, isLoopback, JwtVerifier, readKeys, readTls, type ServerOptions } from '@leasehold/server'
import type { ServeOptions } from './options.js'

type Security = Pick<ServerOptions, 'keys' | 'jwt' | 'tls' | 'clientLimits' | 'audit'>

/** Converts the settings for the server. @throws InvalidError if some of a group of settings are missing */
export function securityOf(options: ServeOptions): Security {
  const { keys, audit, jwtJwks: jwks, jwtIssuer: issuer, jwtAudience: audience } = options
  const { tlsCert: cert, tlsKey: key, tlsClientCa: ca } = options
  requireAllOrNone({ '--jwt-jwks': jwks, '--jwt-issuer': issuer, '--jwt-audience': audience })
  requireAllOrNone({ '--tls-cert': cert, '--tls-key': key })
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

function requireAllOrNone(options: Readonly<Record<string, string | undefined>>): void {
  const missing = Object.keys(options).filter((name) => options[name] === undefined)
  if (missing.length === 0 || missing.length === Object.keys(options).length) return
  throw new InvalidError(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing`, {
    hint: `${Object.keys(options).join(', ')} belong together`,
  })
}

/** Refuses a service without authentication on a non-loopback address. Called before anything is opened. @throws AccessError */
export function checkExposure({ listen, allowAnonymous }: ServeOptions, security: Security): void {
  if (isLoopback(listen.host) || allowAnonymous === true || requiresCredentials(security)) return
  throw new AccessError(
    `refusing to listen on ${listen.host}: any client that can connect could take and steal locks`,
    {
      code: 'forbidden',
      hint: 'require API keys (--keys FILE), listen on 127.0.0.1, or allow anonymous access (--allow-anonymous) on a trusted network',
    },
  )
}

/** Checks the files that the settings name. @throws InvalidError */
export function checkFiles({ keys, jwt, tls }: Security): void {
  if (keys !== undefined) readKeys(keys)
  if (jwt !== undefined) new JwtVerifier(jwt)
  if (tls !== undefined) readTls(tls)
}
