import { redactQuery, type Query, type QueryResult, queryState } from '@leasehold/core'
import { locksResponse } from '../response-schemas.js'
import { json, type Route, route } from '../route.js'
import { locksQuery } from '../request-schemas.js'
import type { Services } from '../services.js'
import { queryJson } from '../json-views.js'

/** Reads one page of the state; linearizable unless `stale`. */
export function query(services: Services, asked: Query, stale: boolean): Promise<QueryResult> {
  return services.replica.read(stale, ({ state, index }) => queryState(state, asked, index))
}

export const lockRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/locks',
    summary: 'Show the holds, waiters and lock delays of one lock or below a prefix.',
    response: locksResponse,
    query: locksQuery,
    async handle({ services, query: asked, status, authorize, mayRead }) {
      const { stale, ...page } = asked
      authorize('read', asked.name === undefined ? [asked.prefix ?? ''] : [asked.name])
      const result = await query(services, page, stale ?? false)
      return json(status, queryJson(status.epoch, redactQuery(result, mayRead)))
    },
  }),
]
