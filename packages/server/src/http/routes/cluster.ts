import { InvalidError, UnavailableError } from '@leasehold/core'
import type { ChangeResult } from '@leasehold/replica'
import type { ClusterAdmin } from '../../peers/index.js'
import { changeResponse, clusterResponse, transferResponse } from '../response-schemas.js'
import { type Call, json, type Route, route } from '../route.js'
import { clusterAddBody, clusterNameBody, noQuery } from '../request-schemas.js'
import type { Services } from '../services.js'

/** @throws UnavailableError on a member that is not the leader, InvalidError for a service of one member */
function adminOf({ cluster, replica }: Services): ClusterAdmin {
  if (cluster === undefined) throw new InvalidError('this is a service of one member, not a cluster')
  if (replica.member.status.role !== 'leader')
    throw new UnavailableError('this member is not the leader', { code: 'no-quorum' })
  return cluster
}

async function changeOutcome(
  { services, status }: Call<unknown, unknown>,
  change: Promise<ChangeResult>,
): Promise<Response> {
  const result = await change
  if (result.kind === 'refused') throw services.replica.errorOf(result)
  return json(status, { index: result.index })
}

export const clusterRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/cluster',
    summary: 'Show the status of this member, and the members that it knows.',
    response: clusterResponse,
    query: noQuery,
    handle({ services, status, authorize }) {
      authorize('read', [''])
      const { member, role, leader, leaderUrl, term, commitIndex, appliedIndex, disk, failure } = status
      const members = services.cluster?.members.map(({ name, url, peer, role: kind, match }) => ({
        name,
        url,
        peer,
        role: kind,
        ...(match === undefined ? {} : { matchIndex: match }),
      }))
      const rest = { term, commitIndex, appliedIndex, disk, ...(failure === undefined ? {} : { failure }) }
      return json(status, {
        member,
        role,
        leader,
        leaderUrl,
        url: services.url,
        ...rest,
        ...(members === undefined ? {} : { members }),
      })
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cluster/add',
    summary: 'Add an empty member, which waits at its peer address, as a learner.',
    response: changeResponse,
    query: noQuery,
    body: clusterAddBody,
    handle(call) {
      call.authorize('admin', [''])
      call.audit({ event: 'admin', verb: `add ${call.body.name}=${call.body.peer}` })
      return changeOutcome(call, adminOf(call.services).add(call.body.name, call.body.peer))
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cluster/promote',
    summary: 'Promote a learner that has caught up to a voter.',
    response: changeResponse,
    query: noQuery,
    body: clusterNameBody,
    handle(call) {
      call.authorize('admin', [''])
      call.audit({ event: 'admin', verb: `promote ${call.body.name}` })
      return changeOutcome(call, adminOf(call.services).promote(call.body.name))
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cluster/remove',
    summary: 'Remove a member; its node number is never used again.',
    response: changeResponse,
    query: noQuery,
    body: clusterNameBody,
    handle(call) {
      call.authorize('admin', [''])
      call.audit({ event: 'admin', verb: `remove ${call.body.name}` })
      return changeOutcome(call, adminOf(call.services).remove(call.body.name))
    },
  }),
  route({
    method: 'POST',
    path: '/v1/cluster/transfer',
    summary: 'Transfer leadership to another voter.',
    response: transferResponse,
    query: noQuery,
    body: clusterNameBody,
    handle(call) {
      call.authorize('admin', [''])
      call.audit({ event: 'admin', verb: `transfer to ${call.body.name}` })
      adminOf(call.services).transfer(call.body.name)
      return json(call.status, { asked: call.body.name })
    },
  }),
]
