import { describe, expect, it } from 'vitest'
import { serve } from '../../support/harness.js'

describe('steal', () => {
  it('ends the holds of a lock, and reports the reason to their holders', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a', mode: 'shared' })
    const two = await post('/v1/acquire', { name: 'a', mode: 'shared' })
    const stolen = await post('/v1/steal', { name: 'a', reason: 'stuck' })
    expect(new Set(stolen.body.stolen)).toEqual(new Set([one.body.id, two.body.id]))
    expect(await post('/v1/renew', { hold: one.body.hold })).toMatchObject({
      status: 410,
      body: { code: 'lost', reason: 'stolen' },
    })
    expect(await post('/v1/steal', { name: 'a', reason: 'stuck' })).toMatchObject({
      status: 409,
      body: { code: 'not-holder' },
    })
  })

  it('ends one hold by its id', async () => {
    const { post } = await serve()
    const one = await post('/v1/acquire', { name: 'a' })
    expect(await post('/v1/steal', { hold: one.body.id, reason: 'stuck', actor: 'ann' })).toMatchObject({
      status: 200,
      body: { stolen: [one.body.id] },
    })
    const otherEpoch = String(BigInt(one.body.id) + 2n ** 48n)
    expect(await post('/v1/steal', { hold: otherEpoch, reason: 'x' })).toMatchObject({
      status: 410,
      body: { code: 'epoch-changed' },
    })
  })
})
