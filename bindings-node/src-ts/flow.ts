/** Flows: tasks of which some wait for others. */

import { randomUUID } from 'node:crypto'
import { InvalidArgumentError, StanchionError } from './errors.js'
import { native, type Native } from './native.js'
import { parse } from './payload.js'
import { TASK, nativeOf, type Task } from './task.js'
import { NODES, OURS, checkNames, checkOurs, listOf, maybeDate, shown } from './values.js'

/**
 * A task of a flow, and what it waits for: all of it, where there is more than one. The id of the task is the node's name, which no
 * two nodes of a flow have; in its queue the task has the id `FLOW/NAME`. `delayMs` counts from when it is put into its queue.
 */
export interface Node<Json = any> extends Omit<Task<Json>, 'onDuplicate'> {
  /** The queue that the task goes into, of the same store and prefix. Default: the flow's. */
  queue?: string | undefined
  /** Runs after these have succeeded, one name or a list. If one ends otherwise, this one is skipped. */
  after?: string | Iterable<string> | undefined
  /** Runs after these have ended, whatever came of them. */
  afterEnd?: string | Iterable<string> | undefined
  /**
   * Runs after one of these has ended without success: it is dead, was cancelled or removed, or was skipped because of another. If
   * none of them comes to that, this one is not needed.
   */
  afterFailure?: string | Iterable<string> | undefined
  /**
   * Runs once all others have succeeded (`then`), as soon as one has ended without success (`failed`), or once all have ended,
   * whatever came of them, also if the flow is cancelled (`finally`). All others: also those that are added while the flow runs,
   * but for those that have an `afterAll` themselves.
   */
  afterAll?: 'then' | 'failed' | 'finally' | undefined
}

/** A node of a flow of a queue whose payloads have a type: those of other queues are not known. */
export type NodeFor<Json = any> = Node<Json> | (Node & { queue: string })

/** How a flow is. It is `failed` if a node that was to run did not succeed. */
export type FlowState = 'running' | 'done' | 'failed' | 'cancelled'

/**
 * What a node is doing: it waits for others; its task is `put` into its queue; the same, and the task was told to end; it is done;
 * dead; cancelled, removed or lost; skipped, since what it needs did not succeed; or not needed, since what it waited to fail has not.
 */
export type NodeState = 'waiting' | 'put' | 'ending' | 'done' | 'dead' | 'cancelled' | 'skipped' | 'unneeded'

/** A node as it is in its flow. */
export interface NodeInfo {
  name: string
  state: NodeState
  /** Its queue, if that is not the flow's. */
  queue: string | null
  /** The nodes that must have succeeded. */
  after: string[]
  /** The nodes that must have ended. */
  afterEnd: string[]
  /** The nodes of which one must have ended without success. */
  afterFailure: string[]
  /** What it waits for of all others. */
  afterAll: 'then' | 'failed' | 'finally' | null
}

/** A flow as it is in a queue. */
export interface FlowInfo {
  id: string
  state: FlowState
  /** When it was put in. */
  created: Date
  /** When it was noted that its last node had ended; null while it runs. */
  ended: Date | null
  /** How many nodes are in each state; states without any are left out. */
  counts: { [state in NodeState]?: number }
  /** Its nodes, each behind those that it waits for. A page of flows comes without them. */
  nodes: NodeInfo[]
}

/** Some flows: those that run, the latest first, then those that have ended. `next` gets the next page; null if this was the last. */
export interface FlowPage {
  flows: FlowInfo[]
  next: string | null
}

/** What has become of a node that another one comes after. Made by `Claim.inputs`. */
export class FlowInput {
  /** The node's name. */
  readonly node: string
  /** What has become of it. */
  readonly state: NodeState
  /** What it gave when it was done, if it gave something. */
  readonly result: Buffer | null

  private constructor(ours: typeof OURS, found: Native.FlowInput) {
    checkOurs(ours, 'an input is made by await claim.inputs()')
    this.node = found.node
    this.state = found.state as NodeState
    this.result = found.result ?? null
  }

  /** @internal */
  static of(found: Native.FlowInput): FlowInput {
    return new FlowInput(OURS, found)
  }

  /**
   * The result, read as JSON each time.
   *
   * @throws {StanchionError} if the node gave none; a SyntaxError if the result is no JSON
   */
  json<Result = any>(): Result {
    if (this.result !== null) return parse(this.result) as Result
    throw new StanchionError(`there is no result: node ${JSON.stringify(this.node)} is ${this.state}`, { operation: 'inputs' })
  }
}

/** A node that has a name, and a list of those that it comes after. */
export type Chained<N> = N extends unknown ? Omit<N, 'id' | 'after'> & { id: string, after: string[] } : never

/**
 * Nodes for `Queue.enqueueFlow` of tasks that run one by one: each comes after the one before, besides what it waits for itself. One
 * without an id gets a random one.
 */
export function chain<N extends Node>(tasks: Iterable<N>): Chained<N>[] {
  let before: string | undefined
  return listOf(tasks, 'tasks', task => {
    checkNode(task)
    const id = task.id ?? randomUUID()
    const after = [...before === undefined ? [] : [before], ...names('after', task.after) ?? []]
    before = id
    return { ...task, id, after } as unknown as Chained<N>
  })
}

const NODE: ReadonlySet<string> = new Set<keyof Node | keyof Task>(
  [...TASK as ReadonlySet<keyof Task>, 'queue', 'after', 'afterEnd', 'afterFailure', 'afterAll'])
const EDGES = { after: NODES, afterEnd: NODES, afterFailure: NODES }

/** @internal */
export function nativeNode(node: Node): Native.Node {
  checkNode(node)
  return new (native().Node)(
    nativeOf(node), node.queue, names('after', node.after), names('afterEnd', node.afterEnd),
    names('afterFailure', node.afterFailure), node.afterAll)
}

function checkNode(node: Node): void {
  if (typeof node !== 'object' || node === null) {
    throw new InvalidArgumentError(`a node is an object, not ${shown(node)}: { id, payload, after }`)
  }
  checkNames(node, NODE, 'property of a node', EDGES)
}

function names(edge: keyof typeof EDGES, given: string | Iterable<string> | null | undefined): string[] | undefined {
  if (given === undefined || given === null) return undefined
  if (typeof given === 'string') return [given]
  return listOf(given, edge, name => {
    if (typeof name === 'string') return name
    throw new InvalidArgumentError(`${edge} is ${NODES.is}; one of these is ${shown(name)}`)
  })
}

/** @internal */
export function flowInfo(found: Native.FlowInfo): FlowInfo {
  const { counts, nodes, ...rest } = found
  return {
    ...rest,
    state: found.state as FlowState,
    created: new Date(found.created),
    ended: maybeDate(found.ended),
    counts: Object.fromEntries(counts.map(({ state, count }) => [state, count])),
    nodes: nodes.map(nodeInfo),
  }
}

function nodeInfo(found: Native.NodeInfo): NodeInfo {
  const { name, state, queue, after, afterEnd, afterFailure, afterAll } = found
  return {
    name, state: state as NodeState, queue: queue ?? null, after, afterEnd, afterFailure,
    afterAll: (afterAll ?? null) as NodeInfo['afterAll'],
  }
}
