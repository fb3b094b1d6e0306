import { LimitError, parseCursor } from '@leasehold/core'
import { EVENT_STREAMS_MAX } from '../../limits.js'
import { type Route, route } from '../route.js'
import { watchQuery } from '../request-schemas.js'

export const watchRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/watch',
    summary: 'Watch the locks and registers below a prefix as server-sent events. The id of an event is its cursor.',
    produces: 'text/event-stream',
    query: watchQuery,
    handle({ services, query, context, authorize, revocationOf, mayRead }) {
      authorize('read', [query.prefix])
      // A browser that reconnects sends the id of the last event that it received.
      const resumed = context.req.header('last-event-id')
      const from = resumed === undefined || resumed === '' ? query.from : parseCursor(resumed)
      if (services.eventStreams.size >= EVENT_STREAMS_MAX)
        throw new LimitError(`${EVENT_STREAMS_MAX} event streams are already open`)
      const headers = {
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      }
      if (context.req.method === 'HEAD') return new Response(null, { headers })
      return new Response(
        services.eventStreams.open({
          prefix: query.prefix,
          from,
          mayRead,
          revocation: () => revocationOf('read', [query.prefix]),
        }),
        { headers },
      )
    },
  }),
]
