import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

const ISSUER = 'https://id.example'
const AUDIENCE = 'leasehold'

export interface TokenOptions {
  readonly expires?: string
  readonly issuer?: string
  readonly audience?: string
}

/** An issuer of web tokens with a key pair of its own. */
export async function createIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }
  return {
    /** The JSON Web Key Set that verifies its tokens. */
    keySet: JSON.stringify({ keys: [jwk] }),
    optionsFor: (jwks: string) => ({ jwks, issuer: ISSUER, audience: AUDIENCE }),
    sign: (claims: JWTPayload, { expires = '1h', issuer = ISSUER, audience = AUDIENCE }: TokenOptions = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
        .setSubject('worker')
        .setIssuer(issuer)
        .setAudience(audience)
        .setExpirationTime(expires)
        .sign(privateKey),
  }
}
