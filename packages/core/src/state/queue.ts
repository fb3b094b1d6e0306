/** A waiter's place in the queue of one lock. */
export interface QueueNode<W> {
  readonly waiter: W
  previous: QueueNode<W> | undefined
  next: QueueNode<W> | undefined
}

/** A first-in, first-out queue from which any waiter may leave. */
export class Queue<W> {
  front: QueueNode<W> | undefined
  #back: QueueNode<W> | undefined
  length = 0

  join(waiter: W): QueueNode<W> {
    const node: QueueNode<W> = { waiter, previous: this.#back, next: undefined }
    if (this.#back === undefined) this.front = node
    else this.#back.next = node
    this.#back = node
    this.length++
    return node
  }

  leave(node: QueueNode<W>): void {
    if (node.previous === undefined) this.front = node.next
    else node.previous.next = node.next
    if (node.next === undefined) this.#back = node.previous
    else node.next.previous = node.previous
    node.previous = undefined
    node.next = undefined
    this.length--
  }

  /** Returns the position of a waiter; 1 for the front. */
  positionOf(node: QueueNode<W>): number {
    let position = 1
    for (let at = node.previous; at !== undefined; at = at.previous) position++
    return position
  }
}
