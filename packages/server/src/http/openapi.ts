import { ERRORS } from '@leasehold/core'
import { z } from 'zod'
import { problemResponse } from './response-schemas.js'
import type { Route } from './route.js'
import type { HealthRoute } from './routes/health.js'

type Json = Record<string, unknown>

const JSON_TYPE = 'application/json'
const BYTES_TYPE = 'application/octet-stream'

/** Builds the OpenAPI 3.1 document from the schemas that validate requests and, in the tests, responses. */
export function openApi(routes: readonly Route[], health: readonly HealthRoute[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) }
  }
  for (const { path, summary } of health) {
    const ok = { description: 'yes', content: { [JSON_TYPE]: { schema: { type: 'object' } } } }
    paths[path] = { get: { summary, operationId: path.slice(1), responses: { '200': ok, '503': ok }, security: [] } }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      version,
      description:
        'Locks with fencing tokens. Names are never in paths; ids, tokens and versions are decimal strings; durations are milliseconds or strings such as 10s. A member that is not the leader responds with 307 and the URL of the leader, or with 503.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{}, { key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'an API key or a JSON Web Token, if the service requires one',
        },
      },
      schemas: { Problem: schemaOf(problemResponse, 'output') },
    },
  }
}

function operation(route: Route): Json {
  const { summary, method, path } = route
  return {
    summary,
    operationId: `${method.toLowerCase()}-${path.slice('/v1/'.length).replaceAll('/', '-')}`,
    parameters: parametersOf(route),
    ...bodyOf(route),
    responses: responsesOf(route),
  }
}

function parametersOf({ query }: Route): Json[] {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

function bodyOf({ body, takes }: Route): Json {
  const json = body ?? takes?.json
  if (json === undefined) return {}
  const bytes = takes?.bytes === true ? { [BYTES_TYPE]: { schema: { type: 'string', format: 'binary' } } } : {}
  return { requestBody: { required: true, content: { [JSON_TYPE]: { schema: schemaOf(json, 'input') }, ...bytes } } }
}

function responsesOf({ response, produces }: Route): Json {
  const content =
    response === undefined
      ? { [produces as string]: { schema: { type: 'string' } } }
      : { [JSON_TYPE]: { schema: schemaOf(response, 'output') } }
  const codes = new Map<string, string[]>()
  for (const [code, { http }] of Object.entries(ERRORS))
    codes.set(String(http), [...(codes.get(String(http)) ?? []), code])
  const problem = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
  const refusals = [...codes].map(([status, names]) => [status, { description: names.join(', '), content: problem }])
  return {
    '200': { description: 'success', content },
    '307': { description: 'this member is not the leader: send the same request to the leader', content: problem },
    ...Object.fromEntries(refusals),
  }
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json
  return rest
}
