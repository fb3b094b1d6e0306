import { describe, expect, it } from 'vitest'
import { serve } from '../../support/harness.js'

describe('GET /v1/cluster', () => {
  it('returns the status of the member', async () => {
    const { get, url } = await serve()
    expect((await get('/v1/cluster')).body).toMatchObject({
      cluster: 'test-cluster',
      member: 'n1',
      role: 'leader',
      leader: 'n1',
      disk: 'ok',
      url,
    })
  })
})
