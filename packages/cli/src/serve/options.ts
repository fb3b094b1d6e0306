/** Settings of a member of a cluster. */
export interface ClusterOptions {
  readonly name?: string
  readonly peerListen?: string
  readonly cluster?: string
  readonly repair?: boolean
  readonly peerTlsCert?: string
  readonly peerTlsKey?: string
  readonly peerTlsCa?: string
  readonly peerTlsAllowedNames?: string
  readonly allowInsecurePeers?: boolean
  readonly acceptRepair?: boolean
}

/** Settings of `serve`, as commander parses them. */
export interface ServeOptions extends ClusterOptions {
  readonly data: string
  readonly listen: Listen
  readonly advertiseUrl?: string
  readonly epoch?: number
  readonly tokenStart?: number
  readonly allowAnonymous?: boolean
  readonly allowOrigins?: readonly string[]
  readonly takeOver?: boolean
  readonly keys?: string
  readonly jwtJwks?: string
  readonly jwtIssuer?: string
  readonly jwtAudience?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly tlsClientCa?: string
  readonly limitRequests?: number
  readonly limitRenewals?: number
  readonly limitSessions?: number
  readonly limitWaiters?: number
  readonly audit?: string
  readonly logLevel: string
  readonly json?: boolean
}

export interface Listen {
  readonly host: string
  readonly port: number
}
