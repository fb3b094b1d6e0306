import type { ComponentChildren, JSX } from 'preact'
import { hrefOf } from '../state/route.js'

/** Number of last digits that are highlighted in a single id. */
const LAST_DIGITS = 6

/**
 * A complete token or id, so that it can be selected and copied. `shared`: the number of leading digits that it has in
 * common with the others in its column; the remaining ones are highlighted. Without it, the last digits are.
 */
export function Token({ value, shared = 0 }: { value: string; shared?: number }): JSX.Element {
  const soft = shared > 0 ? shared : Math.max(0, value.length - LAST_DIGITS)
  return (
    <span class="token">
      {soft > 0 && <span class="soft">{value.slice(0, soft)}</span>}
      {value.slice(soft)}
    </span>
  )
}

/** The name of a lock, as a link to its page. */
export function LockLink({ name, row = false }: { name: string; row?: boolean }): JSX.Element {
  return (
    <a class="name" href={hrefOf('locks', name)} data-row={row ? '' : undefined}>
      {name}
    </a>
  )
}

/** The name of a client, or its session if it has none. */
export function Client({ client, session }: { client: string; session: string | null }): JSX.Element {
  if (client !== '') return <span class="client">{client}</span>
  return <span class="client soft">{session === null ? 'persistent' : `session …${session.slice(-LAST_DIGITS)}`}</span>
}

export function Tag({ kind, children }: { kind?: string; children: ComponentChildren }): JSX.Element {
  return (
    <span class="tag" data-kind={kind}>
      {children}
    </span>
  )
}

/** The placeholder of an empty list. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** A part of a page with its heading. */
export function Section(props: { title: string; note?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  const id = `h-${props.title.toLowerCase().replaceAll(/\W+/g, '-')}`
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>
        {props.title}
        {props.note !== undefined && <span class="note">{props.note}</span>}
      </h2>
      {props.children}
    </section>
  )
}
