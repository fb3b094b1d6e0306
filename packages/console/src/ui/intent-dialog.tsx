import { useEffect, useRef, useState } from 'preact/hooks'
import type { JSX, RefObject } from 'preact'
import { RequestRefused } from '../api/request.js'
import { executeIntent, type Intent, intent } from '../state/commands.js'
import { actor } from '../state/settings.js'

const REASON_MAX = 200

/** Asks for confirmation and a reason before a command ends a hold or session of a client. */
export function IntentDialog(): JSX.Element | null {
  const wanted = intent.value
  return wanted === undefined ? null : <Dialog wanted={wanted} key={wanted.body.hold ?? wanted.subject} />
}

function close(): void {
  intent.value = undefined
}

/** A modal dialog that restores the focus when it is closed. */
function useModal(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return dialog
}

function Dialog({ wanted }: { wanted: Intent }): JSX.Element {
  const dialog = useModal()
  const [reason, setReason] = useState('')
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    if (reason.trim() === '' || busy) return
    setBusy(true)
    setProblem('')
    try {
      await executeIntent(wanted, reason.trim())
      close()
    } catch (error) {
      setProblem(problemText(error as Error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} aria-labelledby="intent-title" onCancel={close} onClose={close}>
      <form onSubmit={submit}>
        <h1 id="intent-title">{wanted.title}</h1>
        <p class="subject">{wanted.subject}</p>
        <dl class="facts">
          {wanted.facts.map(([what, value]) => (
            <div key={what}>
              <dt>{what}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <p class="warning">{wanted.consequence}</p>
        <label for="reason">Reason (shown to the holder, in the events and in the audit log)</label>
        <input
          id="reason"
          autofocus
          required
          maxLength={REASON_MAX}
          autocomplete="off"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
        {wanted.path === '/v1/steal' && <ActorField />}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="danger" disabled={reason.trim() === '' || busy}>
            {busy ? 'Sending…' : wanted.action}
          </button>
        </div>
      </form>
    </dialog>
  )
}

function ActorField(): JSX.Element {
  return (
    <>
      <label for="actor">Your name</label>
      <input
        id="actor"
        maxLength={REASON_MAX}
        autocomplete="off"
        placeholder="console"
        value={actor.value}
        onInput={(event) => (actor.value = event.currentTarget.value)}
      />
    </>
  )
}

function problemText(error: Error): string {
  if (!(error instanceof RequestRefused))
    return `The outcome is unknown: ${error.message}. Check the state before you retry.`
  const { status, code, detail, hint } = error.problem
  if (code === 'not-holder') return 'It had ended already: it was released, or it expired.'
  if (status === 403) return `Not allowed: ${detail}.`
  return `${detail}.${hint === undefined ? '' : ` ${hint}.`}`
}
