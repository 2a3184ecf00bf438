/**
 * What is known about calls, by their numbers.
 *
 * Not a map: when it grows or is tidied up it leaves its old table behind, through which the garbage collector takes
 * everything that the entries refer to for alive, for a while. With many short calls that is most of its work.
 */
export class Calls<T extends { readonly number: number }> {
  /** Each at its number modulo their count, which is a power of two. */
  #slots: (T | undefined)[] = Array(64).fill(undefined)
  #count = 0
  #last = 0

  /** A number that no call has. */
  next(): number {
    if (this.#count * 2 >= this.#slots.length) this.#grow()
    do this.#last = (this.#last + 1) >>> 0; while (this.#slots[this.#slotOf(this.#last)] !== undefined)
    return this.#last
  }

  /** Note a call under the number that `next` gave it last. */
  add(call: T): void {
    this.#slots[this.#slotOf(call.number)] = call
    this.#count += 1
  }

  get(number: number): T | undefined {
    const found = this.#slots[this.#slotOf(number)]
    return found?.number === number ? found : undefined
  }

  delete(call: T): void {
    this.#slots[this.#slotOf(call.number)] = undefined
    this.#count -= 1
  }

  all(): T[] {
    return this.#slots.filter(call => call !== undefined)
  }

  #slotOf(number: number): number {
    return number & (this.#slots.length - 1)
  }

  /** Two that had different places have different ones in a larger table, too. */
  #grow(): void {
    const calls = this.all()
    this.#slots = Array(2 * this.#slots.length).fill(undefined)
    for (const call of calls) this.#slots[this.#slotOf(call.number)] = call
  }
}
