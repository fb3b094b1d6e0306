import 'reflect-metadata'
import {
  Controller,
  Get,
  HttpCode,
  Inject,
  type INestApplication,
  Module,
  Param,
  Post,
  SetMetadata,
  UseGuards,
} from '@nestjs/common'
import { NestFactory, Reflector } from '@nestjs/core'
import type { Locks } from 'leasehold'
import { currentHold, LeaseholdModule, Locked, LOCKS } from 'leasehold/nest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** What a guard of Nest's has read from the handler's metadata. */
const rolesSeen: unknown[] = []

class RolesGuard {
  canActivate(context: { getHandler(): () => unknown }): boolean {
    rolesSeen.push(new Reflector().get('roles', context.getHandler()))
    return true
  }
}

/** A decorator of another library, which wraps the method as well. */
function Shouted(_target: object, _key: string, descriptor: PropertyDescriptor): PropertyDescriptor {
  const method = descriptor.value as (...args: unknown[]) => Promise<{ name: string }>
  async function shouted(this: unknown, ...args: unknown[]) {
    const result = await method.apply(this, args)
    return { ...result, name: result.name.toUpperCase() }
  }
  return { ...descriptor, value: shouted }
}

@Controller('invoices')
class Invoices {
  constructor(@Inject(LOCKS) readonly locks: Locks) {}

  // Metadata below the lock, and routing above it.
  @Post(':id')
  @HttpCode(202)
  @UseGuards(RolesGuard)
  @Locked((id: string) => `invoice/${id}`, { wait: 0 })
  @SetMetadata('roles', ['clerk'])
  async pay(@Param('id') id: string) {
    const hold = currentHold()
    return { id, name: hold.name, state: hold.state, token: String(hold.token) }
  }

  // Routing below the lock, another decorator on either side, and two locks.
  @Locked('outer', { wait: '5s' })
  @Get(':id')
  @UseGuards(RolesGuard)
  @SetMetadata('roles', ['reader'])
  @Shouted
  @Locked((id: string) => `inner/${id}`)
  async read(@Param('id') id: string) {
    return { name: `${currentHold().name} in ${currentHold('outer').name} of ${id}` }
  }
}

@Module({
  imports: [LeaseholdModule.forRoot({ url: 'memory:nest', drain: '5s' })],
  controllers: [Invoices],
})
class AppModule {}

describe('Nest', () => {
  let app: INestApplication
  let url: string
  let locks: Locks
  beforeAll(async () => {
    app = await NestFactory.create(AppModule, { logger: false })
    await app.listen(0, '127.0.0.1')
    url = await app.getUrl()
    locks = app.get(LOCKS)
  })
  afterAll(() => app.close())

  test('the method runs under its hold, behind decorators that keep working', async () => {
    const response = await fetch(`${url}/invoices/42`, { method: 'POST' })
    expect(response.status).toBe(202)
    expect(await response.json()).toEqual({
      id: '42',
      name: 'invoice/42',
      state: 'held',
      token: expect.stringMatching(/^\d+$/),
    })
    expect(rolesSeen.pop()).toEqual(['clerk'])
    expect((await locks.query()).held).toEqual([])
  })

  test('in any order, also around wrapping decorators, and twice', async () => {
    const response = await fetch(`${url}/invoices/7`)
    expect([response.status, await response.json()]).toEqual([200, { name: 'INNER/7 IN OUTER OF 7' }])
    expect(rolesSeen.pop()).toEqual(['reader'])
  })

  test('a lock that is taken is 409, not 500', async () => {
    const taken = await locks.acquire('invoice/42')
    expect((await fetch(`${url}/invoices/42`, { method: 'POST' })).status).toBe(409)
    await taken.release()
  })

  test('name, length and metadata of the method are kept', () => {
    const { pay } = Invoices.prototype
    expect([pay.name, pay.length]).toEqual(['pay', 1])
    expect(Reflect.getMetadata('roles', pay)).toEqual(['clerk'])
    expect(() => currentHold()).toThrow(/no hold here/)
  })

  test('the end of the application waits for the hold, and then closes the client', async () => {
    const hold = await locks.acquire('in-flight')
    let ended = false
    const closing = app.close().then(() => {
      ended = true
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect([ended, hold.state]).toEqual([false, 'held'])
    expect(await hold.release()).toEqual({ released: true })
    await closing
    await expect(locks.acquire('x')).rejects.toThrow()
  })
})
