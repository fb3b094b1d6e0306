import type { ComponentChildren, JSX } from 'preact'
import { hrefOf } from '../state/route.js'

/** How many last digits of an id differ in practice; the others are the epoch and look alike. */
const LAST_DIGITS = 6

/** A token or id. Its last digits are what people compare. */
export function Token({ value }: { value: string }): JSX.Element {
  const cut = Math.max(0, value.length - LAST_DIGITS)
  return (
    <span class="token">
      {cut > 0 && <span class="soft">{value.slice(0, cut)}</span>}
      {value.slice(cut)}
    </span>
  )
}

/** The name of a lock, as a way to its page. */
export function LockLink({ name, row = false }: { name: string; row?: boolean }): JSX.Element {
  return (
    <a class="name" href={hrefOf('locks', name)} data-row={row ? '' : undefined}>
      {name}
    </a>
  )
}

/** Who: the name that a client gave itself, or else its session. */
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

/** What a page shows instead of nothing. */
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
