import { useEffect, useRef, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { Problem } from '../api/types.js'
import { apiKey } from '../state/settings.js'
import { setApiKey } from '../state/start.js'

/** Asks for an API key if the service requires one. */
export function KeyPanel({ problem }: { problem: Problem }): JSX.Element {
  const [key, setKey] = useState('')
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  const submit = (event: Event) => {
    event.preventDefault()
    if (key.trim() !== '') setApiKey(key.trim())
  }
  const certificate = /certificate/.test(problem.detail)
  return (
    <form class="panel" onSubmit={submit} aria-labelledby="key-title">
      <h1 id="key-title">This service requires a key</h1>
      {apiKey.value !== '' && (
        <p class="problem" role="alert">
          The key was rejected: {problem.detail}.
        </p>
      )}
      {certificate ? (
        <p class="problem" role="alert">
          {problem.detail}. {problem.hint}
        </p>
      ) : (
        <p>
          A key with a rule such as <code>*:read</code> shows everything; stealing needs <code>steal</code>. Create one
          with <code>leasehold key create</code>.
        </p>
      )}
      <label for="api-key">API key</label>
      <input
        id="api-key"
        ref={input}
        type="password"
        autocomplete="off"
        spellcheck={false}
        value={key}
        onInput={(event) => setKey(event.currentTarget.value)}
      />
      <p class="soft">It is stored in this tab only, and removed when you close it.</p>
      <button type="submit" class="primary">
        Use this key
      </button>
    </form>
  )
}
