/* The declarations of stanchion.h for PHP's FFI. Made from the sources. */

enum { STANCHION_ABI_VERSION = 0 };

enum { STANCHION_ID_SIZE = 513 };

enum { STANCHION_MAX_PAYLOAD = 16777216 };

typedef enum stanchion_status {
  STANCHION_OK = 0,
  STANCHION_BUSY = 1,
  STANCHION_EMPTY = 2,
  STANCHION_DUPLICATE = 3,
  STANCHION_ABSENT = 4,
  STANCHION_OTHER_VERSION = 5,
  STANCHION_CLAIMED = 6,
  STANCHION_DEAD = 7,
  STANCHION_OVER = 8,
  STANCHION_LOST = 9,
  STANCHION_COMPUTE = 10,
  STANCHION_NOT_STORED = 11,
  STANCHION_RUNNING = 12,
  STANCHION_PENDING = 13,
  STANCHION_ERR_LOCK_TIMEOUT = -1,
  STANCHION_ERR_LEASE_LOST = -2,
  STANCHION_ERR_LEASE_EXPIRED = -3,
  STANCHION_ERR_STALE_RECEIPT = -4,
  STANCHION_ERR_QUEUE_FULL = -5,
  STANCHION_ERR_INVALID_ARGUMENT = -6,
  STANCHION_ERR_UNSUPPORTED = -7,
  STANCHION_ERR_STORE_UNAVAILABLE = -8,
  STANCHION_ERR_INDETERMINATE = -9,
  STANCHION_ERR_WRONG_TYPE = -10,
  STANCHION_ERR_DENIED = -11,
  STANCHION_ERR_CORRUPT = -12,
  STANCHION_ERR_CANCELLED = -13,
  STANCHION_ERR_CLOSED = -14,
  STANCHION_ERR_FORKED = -15,
  STANCHION_ERR_INTERNAL = -16,
  STANCHION_ERR_INVALID_HANDLE = -100,
} stanchion_status;

typedef enum stanchion_held_as {
  STANCHION_HELD_OTHERWISE = 0,
  STANCHION_HELD_LEASE = 1,
  STANCHION_HELD_OFFER = 2,
  STANCHION_HELD_COOLDOWN = 3,
  STANCHION_HELD_FOREIGN = 4,
} stanchion_held_as;

typedef enum stanchion_loss {
  STANCHION_LOSS_NONE = 0,
  STANCHION_LOSS_EXPIRED = 1,
  STANCHION_LOSS_MAX_HOLD = 2,
  STANCHION_LOSS_TAKEN = 3,
  STANCHION_LOSS_BROKEN = 4,
  STANCHION_LOSS_FORGOTTEN = 5,
  STANCHION_LOSS_OVERWRITTEN = 6,
  STANCHION_LOSS_REMOVED = 7,
  STANCHION_LOSS_REFUSED = 8,
  STANCHION_LOSS_STOPPED = 9,
  STANCHION_LOSS_OTHERWISE = 10,
  STANCHION_LOSS_TIMEOUT = 11,
  STANCHION_LOSS_CANCELLED = 12,
} stanchion_loss;

typedef enum stanchion_on_duplicate {
  STANCHION_KEEP = 0,
  STANCHION_REPLACE = 1,
  STANCHION_DEBOUNCE = 2,
  STANCHION_THROTTLE = 3,
  STANCHION_SKIP = 4,
} stanchion_on_duplicate;

typedef enum stanchion_outcome {
  STANCHION_ENQUEUED_OTHERWISE = 0,
  STANCHION_ADDED = 1,
  STANCHION_KEPT = 2,
  STANCHION_REPLACED = 3,
  STANCHION_SUCCESSOR = 4,
  STANCHION_THROTTLED = 5,
  STANCHION_SKIPPED = 6,
} stanchion_outcome;

typedef enum stanchion_task_state {
  STANCHION_STATE_OTHERWISE = 0,
  STANCHION_STATE_SCHEDULED = 1,
  STANCHION_STATE_READY = 2,
  STANCHION_STATE_CLAIMED = 3,
  STANCHION_STATE_DEAD = 4,
  STANCHION_STATE_HELD = 5,
} stanchion_task_state;

typedef enum stanchion_limit_kind {
  STANCHION_GCRA = 0,
  STANCHION_FIXED_WINDOW = 1,
  STANCHION_SLIDING_WINDOW = 2,
} stanchion_limit_kind;

typedef enum stanchion_gate {
  STANCHION_GATE_OTHERWISE = 0,
  STANCHION_GATE_OPEN = 1,
  STANCHION_GATE_PAUSED = 2,
  STANCHION_GATE_MAX_RUNNING = 3,
  STANCHION_GATE_RATE = 4,
  STANCHION_GATE_THROTTLED = 5,
} stanchion_gate;

typedef enum stanchion_verdict_kind {
  STANCHION_ACK = 1,
  STANCHION_NACK = 2,
  STANCHION_BURY = 3,
  STANCHION_PUT_BACK = 4,
  STANCHION_VERDICT_THROTTLE = 5,
} stanchion_verdict_kind;

typedef enum stanchion_event_kind {
  STANCHION_EVENT_COMPLETED = 1,
  STANCHION_EVENT_FAILED = 2,
  STANCHION_EVENT_DEAD = 3,
  STANCHION_EVENT_LOST = 4,
  STANCHION_EVENT_EMPTY = 5,
  STANCHION_EVENT_STORE_FAILED = 6,
  STANCHION_EVENT_STUCK = 7,
  STANCHION_EVENT_STORE_BACK = 8,
  STANCHION_EVENT_SLOTS_MISSED = 9,
} stanchion_event_kind;

typedef enum stanchion_happened {
  STANCHION_HAPPENED_OTHERWISE = 0,
  STANCHION_HAPPENED_ADDED = 1,
  STANCHION_HAPPENED_STARTED = 2,
  STANCHION_HAPPENED_PROGRESS = 3,
  STANCHION_HAPPENED_DONE = 4,
  STANCHION_HAPPENED_FAILED = 5,
  STANCHION_HAPPENED_DEAD = 6,
  STANCHION_HAPPENED_CANCELLED = 7,
  STANCHION_HAPPENED_REMOVED = 8,
  STANCHION_HAPPENED_PUT_BACK = 9,
} stanchion_happened;

typedef enum stanchion_missed {
  STANCHION_MISSED_LAST = 0,
  STANCHION_MISSED_SKIP = 1,
  STANCHION_MISSED_ALL = 2,
} stanchion_missed;

typedef enum stanchion_overlap {
  STANCHION_OVERLAP_QUEUE = 0,
  STANCHION_OVERLAP_SKIP = 1,
} stanchion_overlap;

typedef enum stanchion_schedule_outcome {
  STANCHION_SCHEDULE_OTHERWISE = 0,
  STANCHION_SCHEDULE_ADDED = 1,
  STANCHION_SCHEDULE_CHANGED = 2,
  STANCHION_SCHEDULE_KEPT = 3,
} stanchion_schedule_outcome;

typedef enum stanchion_after_all {
  STANCHION_AFTER_ALL_NONE = 0,
  STANCHION_AFTER_ALL_THEN = 1,
  STANCHION_AFTER_ALL_FAILED = 2,
  STANCHION_AFTER_ALL_FINALLY = 3,
} stanchion_after_all;

typedef enum stanchion_flow_state {
  STANCHION_FLOW_OTHERWISE = 0,
  STANCHION_FLOW_RUNNING = 1,
  STANCHION_FLOW_DONE = 2,
  STANCHION_FLOW_FAILED = 3,
  STANCHION_FLOW_CANCELLED = 4,
} stanchion_flow_state;

typedef enum stanchion_node_state {
  STANCHION_NODE_OTHERWISE = 0,
  STANCHION_NODE_WAITING = 1,
  STANCHION_NODE_PUT = 2,
  STANCHION_NODE_ENDING = 3,
  STANCHION_NODE_DONE = 4,
  STANCHION_NODE_DEAD = 5,
  STANCHION_NODE_CANCELLED = 6,
  STANCHION_NODE_SKIPPED = 7,
  STANCHION_NODE_UNNEEDED = 8,
} stanchion_node_state;

typedef struct stanchion_error stanchion_error;

typedef int64_t stanchion_clock;

typedef struct stanchion_text {
  const char *data;
  size_t len;
} stanchion_text;

typedef struct stanchion_connect_options {
  size_t struct_size;
  struct stanchion_text lock_prefix;
  struct stanchion_text queue_prefix;
  struct stanchion_text label;
  struct stanchion_text tls_ca;
  struct stanchion_text tls_cert;
  struct stanchion_text tls_key;
  int64_t timeout_ms;
  stanchion_clock clock;
  int32_t foreign_share;
} stanchion_connect_options;

typedef int64_t stanchion_client;

typedef struct stanchion_lock_options {
  size_t struct_size;
  int64_t ttl_ms;
  int64_t max_hold_ms;
  int64_t wait_ms;
  int64_t adopt_unexpiring_ms;
  struct stanchion_text label;
  const int32_t *cancel;
  int32_t renew;
  int32_t fail_fast;
  int64_t weight;
  struct stanchion_text owner;
} stanchion_lock_options;

typedef struct stanchion_claim_options {
  size_t struct_size;
  int64_t lease_ms;
  int64_t max_run_ms;
  int64_t wait_ms;
  const int32_t *cancel;
  int32_t renew;
  int64_t timeout_ms;
} stanchion_claim_options;

typedef struct stanchion_worker_options {
  size_t struct_size;
  int64_t concurrency;
  int64_t lease_ms;
  int64_t max_run_ms;
  int32_t until_empty;
  int64_t grace_ms;
  int64_t timeout_ms;
} stanchion_worker_options;

typedef struct stanchion_list_options {
  size_t struct_size;
  struct stanchion_text prefix;
  struct stanchion_text page;
  int64_t max;
  int32_t state;
  int32_t without_payloads;
} stanchion_list_options;

typedef int64_t stanchion_holders;

typedef struct stanchion_holder {
  size_t struct_size;
  int64_t fence;
  int64_t since_ms;
  int64_t remaining_ms;
  int64_t waiters;
  int32_t held_as;
  int32_t pid;
  int32_t weight;
  char label[257];
  char host[257];
} stanchion_holder;

typedef int64_t stanchion_waiters;

typedef struct stanchion_waiter {
  size_t struct_size;
  int64_t since_ms;
  int64_t waiting_ms;
  int32_t pid;
  int32_t weight;
  char label[257];
  char host[257];
} stanchion_waiter;

typedef int64_t stanchion_lease;

typedef struct stanchion_limit {
  size_t struct_size;
  int64_t n;
  int64_t per_us;
  int64_t burst;
  int32_t kind;
  int64_t count;
  int64_t wait_ms;
  const int32_t *cancel;
} stanchion_limit;

typedef struct stanchion_cached_options {
  size_t struct_size;
  int64_t ttl_ms;
  int64_t stale_ms;
  int64_t wait_ms;
  int64_t lease_ms;
  int64_t max_run_ms;
  int32_t without_store;
  double beta;
  struct stanchion_text label;
  const int32_t *cancel;
} stanchion_cached_options;

typedef int64_t stanchion_cached;

typedef struct stanchion_lease_info {
  size_t struct_size;
  struct stanchion_text name;
  struct stanchion_text token;
  int64_t fence;
} stanchion_lease_info;

typedef struct stanchion_header {
  struct stanchion_text name;
  struct stanchion_text value;
} stanchion_header;

typedef struct stanchion_task {
  size_t struct_size;
  struct stanchion_text id;
  const void *payload;
  size_t payload_len;
  const struct stanchion_header *headers;
  size_t header_count;
  int64_t delay_ms;
  int64_t due_ms;
  int64_t max_attempts;
  int64_t expires_ms;
  int64_t window_ms;
  int32_t on_duplicate;
  int32_t priority;
  struct stanchion_text kind;
  int64_t timeout_ms;
  struct stanchion_text backoff;
  int64_t keep_result_ms;
  struct stanchion_text key;
} stanchion_task;

typedef int64_t stanchion_answers;

typedef struct stanchion_enqueued {
  size_t struct_size;
  int64_t version;
  int64_t due_ms;
  int32_t outcome;
  int32_t id_len;
  char id[513];
} stanchion_enqueued;

typedef int64_t stanchion_claim;

typedef struct stanchion_claim_info {
  size_t struct_size;
  struct stanchion_text id;
  struct stanchion_text queue;
  const void *payload;
  size_t payload_len;
  const struct stanchion_header *headers;
  size_t header_count;
  int64_t receipt;
  int64_t version;
  int64_t due_ms;
  int64_t attempt;
  int64_t max_attempts;
  int32_t priority;
  struct stanchion_text kind;
  struct stanchion_text key;
  struct stanchion_text flow;
} stanchion_claim_info;

typedef struct stanchion_verdict {
  size_t struct_size;
  stanchion_claim claim;
  int64_t delay_ms;
  struct stanchion_text reason;
  int32_t kind;
  const void *result;
  size_t result_len;
} stanchion_verdict;

typedef int64_t stanchion_tasks;

typedef struct stanchion_task_info {
  size_t struct_size;
  struct stanchion_text id;
  struct stanchion_text reason;
  const void *payload;
  size_t payload_len;
  const struct stanchion_header *headers;
  size_t header_count;
  int64_t size;
  int64_t version;
  int64_t due_ms;
  int64_t expires_ms;
  int64_t receipt;
  int64_t lease_left_ms;
  int64_t died_ms;
  int64_t successor_due_ms;
  int64_t attempts;
  int64_t max_attempts;
  int32_t state;
  int32_t priority;
  struct stanchion_text claimed_by_label;
  struct stanchion_text claimed_by_host;
  int64_t claimed_at_ms;
  int32_t claimed_by_pid;
  struct stanchion_text kind;
  int64_t timeout_ms;
  struct stanchion_text backoff;
  const void *progress;
  size_t progress_len;
  size_t failure_count;
  int32_t cancelled;
  struct stanchion_text key;
} stanchion_task_info;

typedef struct stanchion_task_failure {
  size_t struct_size;
  int64_t at_ms;
  struct stanchion_text reason;
} stanchion_task_failure;

typedef int64_t stanchion_result;

typedef struct stanchion_result_info {
  size_t struct_size;
  const void *result;
  size_t result_len;
  int64_t version;
  struct stanchion_text reason;
} stanchion_result_info;

typedef int64_t stanchion_task_events;

typedef struct stanchion_task_event {
  size_t struct_size;
  int64_t number;
  int64_t at_ms;
  struct stanchion_text id;
  int64_t version;
  int64_t attempt;
  struct stanchion_text reason;
  int32_t what;
} stanchion_task_event;

typedef struct stanchion_dead_tasks {
  size_t struct_size;
  const struct stanchion_text *ids;
  size_t id_count;
  const int64_t *receipts;
  size_t receipt_count;
  uint64_t count;
  struct stanchion_text reason;
  struct stanchion_text prefix;
  int64_t older_than_ms;
} stanchion_dead_tasks;

typedef struct stanchion_schedule {
  size_t struct_size;
  struct stanchion_text id;
  struct stanchion_text when;
  struct stanchion_text tz;
  int64_t starts_ms;
  int64_t ends_ms;
  int64_t jitter_ms;
  int64_t missed_max;
  int32_t missed;
  int32_t overlap;
  int32_t paused;
  int32_t priority;
  const void *payload;
  size_t payload_len;
  const struct stanchion_header *headers;
  size_t header_count;
  int64_t max_attempts;
  int64_t expires_ms;
  struct stanchion_text key;
} stanchion_schedule;

typedef int64_t stanchion_schedules;

typedef struct stanchion_schedule_info {
  size_t struct_size;
  struct stanchion_text id;
  struct stanchion_text when;
  struct stanchion_text tz;
  struct stanchion_text owner;
  struct stanchion_text last_task;
  int64_t starts_ms;
  int64_t ends_ms;
  int64_t jitter_ms;
  int64_t next_ms;
  int64_t late_ms;
  int64_t fired;
  int64_t skipped;
  int64_t missed_slots;
  int64_t missed_max;
  int64_t max_attempts;
  int64_t expires_ms;
  int64_t size;
  int32_t missed;
  int32_t overlap;
  int32_t paused;
  int32_t priority;
  struct stanchion_text key;
} stanchion_schedule_info;

typedef struct stanchion_synced {
  size_t struct_size;
  int64_t added;
  int64_t changed;
  int64_t kept;
  int64_t removed;
  int64_t newer;
} stanchion_synced;

typedef struct stanchion_ran {
  size_t struct_size;
  int32_t id_len;
  char id[513];
} stanchion_ran;

typedef int64_t stanchion_consumers;

typedef struct stanchion_consumer {
  size_t struct_size;
  int64_t waiters;
  int64_t claims;
  int32_t pid;
  char label[257];
  char host[257];
} stanchion_consumer;

typedef struct stanchion_rate {
  int64_t count;
  int64_t per_ms;
  int64_t burst;
} stanchion_rate;

typedef struct stanchion_key_limits {
  size_t struct_size;
  int64_t concurrency;
  struct stanchion_rate rate;
  int64_t weight;
} stanchion_key_limits;

typedef int64_t stanchion_keys;

typedef struct stanchion_key_info {
  size_t struct_size;
  struct stanchion_text key;
  int64_t running;
  int64_t in_line;
  int64_t held;
  int64_t opens_in_ms;
  int64_t concurrency;
  struct stanchion_rate rate;
  int64_t weight;
} stanchion_key_info;

typedef struct stanchion_node {
  size_t struct_size;
  const struct stanchion_task *task;
  struct stanchion_text queue;
  const struct stanchion_text *after;
  size_t after_count;
  const struct stanchion_text *after_end;
  size_t after_end_count;
  const struct stanchion_text *after_failure;
  size_t after_failure_count;
  int32_t after_all;
} stanchion_node;

typedef int64_t stanchion_flows;

typedef struct stanchion_flow_info {
  size_t struct_size;
  struct stanchion_text id;
  int64_t created_ms;
  int64_t ended_ms;
  int64_t waiting;
  int64_t put;
  int64_t ending;
  int64_t done;
  int64_t dead;
  int64_t cancelled;
  int64_t skipped;
  int64_t unneeded;
  size_t node_count;
  int32_t state;
} stanchion_flow_info;

typedef struct stanchion_node_info {
  size_t struct_size;
  struct stanchion_text name;
  struct stanchion_text queue;
  const struct stanchion_text *after;
  size_t after_count;
  const struct stanchion_text *after_end;
  size_t after_end_count;
  const struct stanchion_text *after_failure;
  size_t after_failure_count;
  int32_t state;
  int32_t after_all;
} stanchion_node_info;

typedef int64_t stanchion_inputs;

typedef struct stanchion_input {
  size_t struct_size;
  struct stanchion_text node;
  const void *result;
  size_t result_len;
  int32_t state;
} stanchion_input;

typedef struct stanchion_stats {
  size_t struct_size;
  int64_t scheduled;
  int64_t ready;
  int64_t claimed;
  int64_t dead;
  int64_t successors;
  int64_t next_due_ms;
  int64_t enqueued;
  int64_t acked;
  int64_t retried;
  int64_t died;
  int64_t max_len;
  int64_t dead_max;
  int64_t dead_age_ms;
  int64_t dead_bytes;
  int32_t intake;
  int32_t paused;
  int64_t waiters;
  int64_t schedules;
  int64_t schedules_late_ms;
  int64_t events;
  int64_t max_running;
  struct stanchion_rate rate;
  int64_t key_concurrency;
  struct stanchion_rate key_rate;
  int64_t held;
  int64_t keys_waiting;
  int64_t next_key_ms;
  int64_t opens_in_ms;
  int32_t gate;
  int64_t flows;
} stanchion_stats;

typedef struct stanchion_queue_config {
  size_t struct_size;
  int64_t max_len;
  int64_t dead_max;
  int64_t dead_age_ms;
  int64_t dead_bytes;
  int32_t intake;
  int64_t events;
  int64_t max_running;
  struct stanchion_rate rate;
  int64_t key_concurrency;
  struct stanchion_rate key_rate;
} stanchion_queue_config;

typedef int64_t stanchion_worker;

typedef struct stanchion_worker_report {
  size_t struct_size;
  int64_t completed;
  int64_t failed;
  int64_t dead;
  int64_t lost;
} stanchion_worker_report;

typedef struct stanchion_worker_event {
  size_t struct_size;
  int64_t attempt;
  int32_t kind;
  int32_t id_len;
  int32_t reason_len;
  char id[513];
  char reason[1025];
} stanchion_worker_event;

typedef int64_t stanchion_names;

typedef int64_t stanchion_metrics;

const char *stanchion_version(void);

int32_t stanchion_abi_version(void);

int32_t stanchion_error_code(const struct stanchion_error *error);

const char *stanchion_error_message(const struct stanchion_error *error);

const char *stanchion_error_operation(const struct stanchion_error *error);

const char *stanchion_error_name(const struct stanchion_error *error);

int32_t stanchion_error_is_retryable(const struct stanchion_error *error);

void stanchion_error_free(struct stanchion_error *error);

const char *stanchion_status_name(int32_t status);

int32_t stanchion_clock_new(stanchion_clock *out, struct stanchion_error **err);

int32_t stanchion_clock_advance(stanchion_clock clock, int64_t time_ms, struct stanchion_error **err);

void stanchion_clock_free(stanchion_clock clock);

void stanchion_connect_options_init(struct stanchion_connect_options *options, size_t struct_size);

int32_t stanchion_connect(const char *url,
                          size_t url_len,
                          const struct stanchion_connect_options *options,
                          stanchion_client *out,
                          struct stanchion_error **err);

void stanchion_client_free(stanchion_client client);

int32_t stanchion_client_release_all(stanchion_client client, size_t *count, struct stanchion_error **err);

int32_t stanchion_client_close(stanchion_client client, size_t *count, struct stanchion_error **err);

int32_t stanchion_client_linger(stanchion_client client,
                                int64_t time_ms,
                                int32_t *done,
                                struct stanchion_error **err);

int32_t stanchion_connect_shared(const char *url,
                                 size_t url_len,
                                 const struct stanchion_connect_options *options,
                                 stanchion_client *out,
                                 struct stanchion_error **err);

void stanchion_free_all(void);

void stanchion_lock_options_init(struct stanchion_lock_options *options, size_t struct_size);

void stanchion_claim_options_init(struct stanchion_claim_options *options, size_t struct_size);

void stanchion_worker_options_init(struct stanchion_worker_options *options, size_t struct_size);

void stanchion_list_options_init(struct stanchion_list_options *options, size_t struct_size);

size_t stanchion_holders_len(stanchion_holders holders);

int32_t stanchion_holders_at(stanchion_holders holders,
                             size_t index,
                             struct stanchion_holder *out,
                             struct stanchion_error **err);

void stanchion_holders_free(stanchion_holders holders);

size_t stanchion_waiters_len(stanchion_waiters waiters);

int32_t stanchion_waiters_at(stanchion_waiters waiters,
                             size_t index,
                             struct stanchion_waiter *out,
                             struct stanchion_error **err);

void stanchion_waiters_free(stanchion_waiters waiters);

int32_t stanchion_lock_acquire(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_lock_options *options,
                               stanchion_lease *out,
                               struct stanchion_error **err);

int32_t stanchion_lock_holder(stanchion_client client,
                              const char *name,
                              size_t name_len,
                              struct stanchion_holder *out,
                              struct stanchion_error **err);

int32_t stanchion_lock_holders(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               stanchion_holders *out,
                               struct stanchion_error **err);

int32_t stanchion_lock_waiters(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               stanchion_waiters *out,
                               struct stanchion_error **err);

int32_t stanchion_lock_is_locked(stanchion_client client,
                                 const char *name,
                                 size_t name_len,
                                 struct stanchion_error **err);

int32_t stanchion_lock_break_lease(stanchion_client client,
                                   const char *name,
                                   size_t name_len,
                                   struct stanchion_error **err);

int32_t stanchion_read_lock_acquire(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    const struct stanchion_lock_options *options,
                                    stanchion_lease *out,
                                    struct stanchion_error **err);

int32_t stanchion_write_lock_acquire(stanchion_client client,
                                     const char *name,
                                     size_t name_len,
                                     const struct stanchion_lock_options *options,
                                     stanchion_lease *out,
                                     struct stanchion_error **err);

int32_t stanchion_rw_lock_holders(stanchion_client client,
                                  const char *name,
                                  size_t name_len,
                                  stanchion_holders *out,
                                  struct stanchion_error **err);

int32_t stanchion_rw_lock_waiters(stanchion_client client,
                                  const char *name,
                                  size_t name_len,
                                  stanchion_waiters *out,
                                  struct stanchion_error **err);

int32_t stanchion_rw_lock_is_locked(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    struct stanchion_error **err);

int32_t stanchion_rw_lock_break_lease(stanchion_client client,
                                      const char *name,
                                      size_t name_len,
                                      struct stanchion_error **err);

int32_t stanchion_semaphore_acquire(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    int64_t permits,
                                    const struct stanchion_lock_options *options,
                                    stanchion_lease *out,
                                    struct stanchion_error **err);

int32_t stanchion_semaphore_holders(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    stanchion_holders *out,
                                    struct stanchion_error **err);

int32_t stanchion_semaphore_waiters(stanchion_client client,
                                    const char *name,
                                    size_t name_len,
                                    stanchion_waiters *out,
                                    struct stanchion_error **err);

int32_t stanchion_semaphore_is_locked(stanchion_client client,
                                      const char *name,
                                      size_t name_len,
                                      struct stanchion_error **err);

int32_t stanchion_semaphore_break_lease(stanchion_client client,
                                        const char *name,
                                        size_t name_len,
                                        struct stanchion_error **err);

int32_t stanchion_multi_lock_acquire(stanchion_client client,
                                     const struct stanchion_text *names,
                                     size_t name_count,
                                     const struct stanchion_lock_options *options,
                                     stanchion_lease *out,
                                     struct stanchion_error **err);

void stanchion_limit_init(struct stanchion_limit *limit, size_t struct_size);

int32_t stanchion_limiter_take(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_limit *limit,
                               int64_t *retry_after_us,
                               struct stanchion_error **err);

void stanchion_cached_options_init(struct stanchion_cached_options *options, size_t struct_size);

int32_t stanchion_cached_begin(stanchion_client client,
                               const char *name,
                               size_t name_len,
                               const struct stanchion_cached_options *options,
                               stanchion_cached *out,
                               struct stanchion_error **err);

int32_t stanchion_cached_get(stanchion_cached cached,
                             const void **value,
                             size_t *value_len,
                             struct stanchion_error **err);

int32_t stanchion_cached_store(stanchion_cached cached,
                               const void *value,
                               size_t value_len,
                               struct stanchion_error **err);

int32_t stanchion_cached_is_valid(stanchion_cached cached);

void stanchion_cached_free(stanchion_cached cached);

int32_t stanchion_invalidate(stanchion_client client,
                             const char *name,
                             size_t name_len,
                             struct stanchion_error **err);

int32_t stanchion_lease_get(stanchion_lease lease,
                            struct stanchion_lease_info *out,
                            struct stanchion_error **err);

int64_t stanchion_lease_fence(stanchion_lease lease);

int64_t stanchion_lease_remaining_ms(stanchion_lease lease);

int32_t stanchion_lease_is_valid(stanchion_lease lease);

int32_t stanchion_lease_loss(stanchion_lease lease);

size_t stanchion_lease_fences_len(stanchion_lease lease);

int32_t stanchion_lease_fences_at(stanchion_lease lease,
                                  size_t index,
                                  struct stanchion_text *name,
                                  int64_t *fence,
                                  struct stanchion_error **err);

int32_t stanchion_lease_check(stanchion_lease lease, struct stanchion_error **err);

int32_t stanchion_lease_wait_lost(stanchion_lease lease, int64_t time_ms, struct stanchion_error **err);

int32_t stanchion_lease_extend(stanchion_lease lease, int64_t ttl_ms, struct stanchion_error **err);

int32_t stanchion_lease_extend_exact(stanchion_lease lease, int64_t ttl_ms, struct stanchion_error **err);

int32_t stanchion_lease_downgrade(stanchion_lease lease, struct stanchion_error **err);

int32_t stanchion_lease_upgrade(stanchion_lease lease, struct stanchion_error **err);

int32_t stanchion_lease_release(stanchion_lease lease, struct stanchion_error **err);

int32_t stanchion_lease_release_with_cooldown(stanchion_lease lease,
                                              int64_t cooldown_ms,
                                              struct stanchion_error **err);

int32_t stanchion_lease_detach(stanchion_lease lease,
                               int64_t ttl_ms,
                               struct stanchion_text *out,
                               struct stanchion_error **err);

int32_t stanchion_client_resume_lease(stanchion_client client,
                                      const char *text_of_handle,
                                      size_t text_len,
                                      stanchion_lease *out,
                                      struct stanchion_error **err);

void stanchion_lease_free(stanchion_lease lease);

void stanchion_task_init(struct stanchion_task *task, size_t struct_size);

size_t stanchion_answers_len(stanchion_answers answers);

int32_t stanchion_answers_at(stanchion_answers answers,
                             size_t index,
                             struct stanchion_enqueued *out,
                             struct stanchion_error **err);

void stanchion_answers_free(stanchion_answers answers);

int32_t stanchion_claim_get(stanchion_claim claim,
                            struct stanchion_claim_info *out,
                            struct stanchion_error **err);

int64_t stanchion_claim_remaining_ms(stanchion_claim claim);

int32_t stanchion_claim_is_valid(stanchion_claim claim);

int32_t stanchion_claim_loss(stanchion_claim claim);

int32_t stanchion_claim_wait_lost(stanchion_claim claim, int64_t time_ms, struct stanchion_error **err);

int32_t stanchion_claim_ack(stanchion_claim claim, struct stanchion_error **err);

int32_t stanchion_claim_ack_with(stanchion_claim claim,
                                 const void *result,
                                 size_t result_len,
                                 struct stanchion_error **err);

int32_t stanchion_claim_progress(stanchion_claim claim,
                                 const void *progress,
                                 size_t progress_len,
                                 struct stanchion_error **err);

int32_t stanchion_claim_nack(stanchion_claim claim,
                             int64_t delay_ms,
                             const char *reason,
                             size_t reason_len,
                             struct stanchion_error **err);

int32_t stanchion_claim_bury(stanchion_claim claim,
                             const char *reason,
                             size_t reason_len,
                             struct stanchion_error **err);

int32_t stanchion_claim_put_back(stanchion_claim claim, int64_t delay_ms, struct stanchion_error **err);

int32_t stanchion_claim_throttle(stanchion_claim claim, int64_t time_ms, struct stanchion_error **err);

int32_t stanchion_claim_extend(stanchion_claim claim, int64_t lease_ms, struct stanchion_error **err);

void stanchion_claim_free(stanchion_claim claim);

void stanchion_verdict_init(struct stanchion_verdict *verdict, size_t struct_size);

int32_t stanchion_queue_enqueue(stanchion_client client,
                                const char *queue_name,
                                size_t queue_len,
                                const struct stanchion_task *task,
                                struct stanchion_enqueued *out,
                                struct stanchion_error **err);

int32_t stanchion_queue_enqueue_many(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const struct stanchion_task *tasks,
                                     size_t task_count,
                                     stanchion_answers *out,
                                     struct stanchion_error **err);

int32_t stanchion_queue_claim(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              const struct stanchion_claim_options *options,
                              stanchion_claim *out,
                              size_t max,
                              size_t *count,
                              struct stanchion_error **err);

int32_t stanchion_queues_claim(stanchion_client client,
                               const struct stanchion_text *queue_names,
                               size_t queue_count,
                               const struct stanchion_claim_options *options,
                               stanchion_claim *out,
                               size_t max,
                               size_t *count,
                               struct stanchion_error **err);

int32_t stanchion_queue_settle(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const struct stanchion_verdict *verdict_array,
                               size_t verdict_count,
                               stanchion_answers *out,
                               struct stanchion_error **err);

int32_t stanchion_queue_settle_and_claim(stanchion_client client,
                                         const char *queue_name,
                                         size_t queue_len,
                                         const struct stanchion_verdict *verdict_array,
                                         size_t verdict_count,
                                         stanchion_answers *answers,
                                         const struct stanchion_claim_options *options,
                                         stanchion_claim *out,
                                         size_t max,
                                         size_t *count,
                                         struct stanchion_error **err);

size_t stanchion_tasks_len(stanchion_tasks tasks);

int32_t stanchion_tasks_at(stanchion_tasks tasks,
                           size_t index,
                           struct stanchion_task_info *out,
                           struct stanchion_error **err);

int32_t stanchion_tasks_failure_at(stanchion_tasks tasks,
                                   size_t index,
                                   size_t failure,
                                   struct stanchion_task_failure *out,
                                   struct stanchion_error **err);

int32_t stanchion_tasks_next(stanchion_tasks tasks, struct stanchion_text *out, struct stanchion_error **err);

void stanchion_tasks_free(stanchion_tasks tasks);

int32_t stanchion_queue_pop(stanchion_client client,
                            const char *queue_name,
                            size_t queue_len,
                            size_t max,
                            stanchion_tasks *out,
                            struct stanchion_error **err);

int32_t stanchion_queue_peek(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             size_t max,
                             stanchion_tasks *out,
                             struct stanchion_error **err);

int32_t stanchion_queue_get(stanchion_client client,
                            const char *queue_name,
                            size_t queue_len,
                            const char *id,
                            size_t id_len,
                            stanchion_tasks *out,
                            struct stanchion_error **err);

int32_t stanchion_queue_list(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             const struct stanchion_list_options *options,
                             stanchion_tasks *out,
                             struct stanchion_error **err);

int32_t stanchion_queue_remove(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               int64_t if_version,
                               int64_t *found_version,
                               struct stanchion_error **err);

int32_t stanchion_queue_cancel(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               struct stanchion_error **err);

int32_t stanchion_queue_reschedule(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *id,
                                   size_t id_len,
                                   int64_t due_ms,
                                   int64_t *moved_ms,
                                   struct stanchion_error **err);

int32_t stanchion_queue_result(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               const char *id,
                               size_t id_len,
                               int64_t version,
                               int64_t wait_ms,
                               stanchion_result *out,
                               struct stanchion_error **err);

int32_t stanchion_result_get(stanchion_result result,
                             struct stanchion_result_info *out,
                             struct stanchion_error **err);

void stanchion_result_free(stanchion_result result);

int32_t stanchion_queue_events(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               int64_t after,
                               int64_t wait_ms,
                               const int32_t *cancel,
                               stanchion_task_events *out,
                               struct stanchion_error **err);

size_t stanchion_task_events_len(stanchion_task_events events);

int32_t stanchion_task_events_at(stanchion_task_events events,
                                 size_t index,
                                 struct stanchion_task_event *out,
                                 struct stanchion_error **err);

int32_t stanchion_task_events_missed(stanchion_task_events events);

int64_t stanchion_task_events_cursor(stanchion_task_events events);

void stanchion_task_events_free(stanchion_task_events events);

void stanchion_dead_tasks_init(struct stanchion_dead_tasks *dead, size_t struct_size);

int32_t stanchion_queue_kick(stanchion_client client,
                             const char *queue_name,
                             size_t queue_len,
                             const struct stanchion_dead_tasks *dead,
                             uint64_t *moved,
                             struct stanchion_error **err);

int32_t stanchion_queue_remove_dead(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const struct stanchion_dead_tasks *dead,
                                    uint64_t *removed,
                                    struct stanchion_error **err);

void stanchion_schedule_init(struct stanchion_schedule *schedule, size_t struct_size);

int32_t stanchion_schedule_preview(const struct stanchion_schedule *schedule,
                                   int64_t after_ms,
                                   int64_t *out,
                                   size_t count,
                                   size_t *found,
                                   struct stanchion_error **err);

size_t stanchion_schedules_len(stanchion_schedules schedules);

int32_t stanchion_schedules_at(stanchion_schedules schedules,
                               size_t index,
                               struct stanchion_schedule_info *out,
                               struct stanchion_error **err);

int32_t stanchion_schedules_next(stanchion_schedules schedules,
                                 struct stanchion_text *out,
                                 struct stanchion_error **err);

void stanchion_schedules_free(stanchion_schedules schedules);

int32_t stanchion_queue_schedule(stanchion_client client,
                                 const char *queue_name,
                                 size_t queue_len,
                                 const struct stanchion_schedule *schedule,
                                 int32_t *outcome,
                                 struct stanchion_error **err);

int32_t stanchion_queue_sync_schedules(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *owner,
                                       size_t owner_len,
                                       int64_t generation,
                                       const struct stanchion_schedule *schedules,
                                       size_t schedule_count,
                                       struct stanchion_synced *out,
                                       struct stanchion_error **err);

int32_t stanchion_queue_get_schedule(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     stanchion_schedules *out,
                                     struct stanchion_error **err);

int32_t stanchion_queue_list_schedules(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *page,
                                       size_t page_len,
                                       size_t max,
                                       stanchion_schedules *out,
                                       struct stanchion_error **err);

int32_t stanchion_queue_pause_schedule(stanchion_client client,
                                       const char *queue_name,
                                       size_t queue_len,
                                       const char *id,
                                       size_t id_len,
                                       struct stanchion_error **err);

int32_t stanchion_queue_resume_schedule(stanchion_client client,
                                        const char *queue_name,
                                        size_t queue_len,
                                        const char *id,
                                        size_t id_len,
                                        struct stanchion_error **err);

int32_t stanchion_queue_run_schedule(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     struct stanchion_ran *out,
                                     struct stanchion_error **err);

int32_t stanchion_queue_remove_schedule(stanchion_client client,
                                        const char *queue_name,
                                        size_t queue_len,
                                        const char *id,
                                        size_t id_len,
                                        struct stanchion_error **err);

size_t stanchion_consumers_len(stanchion_consumers consumers);

int32_t stanchion_consumers_at(stanchion_consumers consumers,
                               size_t index,
                               struct stanchion_consumer *out,
                               struct stanchion_error **err);

void stanchion_consumers_free(stanchion_consumers consumers);

void stanchion_key_limits_init(struct stanchion_key_limits *limits, size_t struct_size);

int32_t stanchion_queue_limit_key(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const char *key,
                                  size_t key_len,
                                  const struct stanchion_key_limits *limits,
                                  struct stanchion_error **err);

int32_t stanchion_queue_get_key(stanchion_client client,
                                const char *queue_name,
                                size_t queue_len,
                                const char *key,
                                size_t key_len,
                                stanchion_keys *out,
                                struct stanchion_error **err);

int32_t stanchion_queue_list_keys(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const char *page,
                                  size_t page_len,
                                  size_t max,
                                  stanchion_keys *out,
                                  struct stanchion_error **err);

size_t stanchion_keys_len(stanchion_keys keys);

int32_t stanchion_keys_at(stanchion_keys keys,
                          size_t index,
                          struct stanchion_key_info *out,
                          struct stanchion_error **err);

int32_t stanchion_keys_next(stanchion_keys keys, struct stanchion_text *out, struct stanchion_error **err);

void stanchion_keys_free(stanchion_keys keys);

void stanchion_node_init(struct stanchion_node *node, size_t struct_size);

int32_t stanchion_queue_enqueue_flow(stanchion_client client,
                                     const char *queue_name,
                                     size_t queue_len,
                                     const char *id,
                                     size_t id_len,
                                     const struct stanchion_node *nodes,
                                     size_t node_count,
                                     int32_t *was_put,
                                     struct stanchion_error **err);

int32_t stanchion_queue_add_to_flow(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const char *id,
                                    size_t id_len,
                                    const struct stanchion_node *nodes,
                                    size_t node_count,
                                    struct stanchion_error **err);

int32_t stanchion_queue_cancel_flow(stanchion_client client,
                                    const char *queue_name,
                                    size_t queue_len,
                                    const char *id,
                                    size_t id_len,
                                    struct stanchion_error **err);

int32_t stanchion_queue_retry_flow(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *id,
                                   size_t id_len,
                                   struct stanchion_error **err);

int32_t stanchion_queue_get_flow(stanchion_client client,
                                 const char *queue_name,
                                 size_t queue_len,
                                 const char *id,
                                 size_t id_len,
                                 stanchion_flows *out,
                                 struct stanchion_error **err);

int32_t stanchion_queue_list_flows(stanchion_client client,
                                   const char *queue_name,
                                   size_t queue_len,
                                   const char *page,
                                   size_t page_len,
                                   size_t max,
                                   stanchion_flows *out,
                                   struct stanchion_error **err);

size_t stanchion_flows_len(stanchion_flows flows);

int32_t stanchion_flows_at(stanchion_flows flows,
                           size_t index,
                           struct stanchion_flow_info *out,
                           struct stanchion_error **err);

int32_t stanchion_flows_node_at(stanchion_flows flows,
                                size_t index,
                                size_t node,
                                struct stanchion_node_info *out,
                                struct stanchion_error **err);

int32_t stanchion_flows_next(stanchion_flows flows, struct stanchion_text *out, struct stanchion_error **err);

void stanchion_flows_free(stanchion_flows flows);

int32_t stanchion_claim_inputs(stanchion_claim claim, stanchion_inputs *out, struct stanchion_error **err);

size_t stanchion_inputs_len(stanchion_inputs inputs);

int32_t stanchion_inputs_at(stanchion_inputs inputs,
                            size_t index,
                            struct stanchion_input *out,
                            struct stanchion_error **err);

void stanchion_inputs_free(stanchion_inputs inputs);

int32_t stanchion_queue_stats(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              struct stanchion_stats *out,
                              struct stanchion_error **err);

int32_t stanchion_queue_consumers(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  stanchion_consumers *out,
                                  struct stanchion_error **err);

int32_t stanchion_queue_pause(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              struct stanchion_error **err);

int32_t stanchion_queue_resume(stanchion_client client,
                               const char *queue_name,
                               size_t queue_len,
                               struct stanchion_error **err);

int32_t stanchion_queue_purge(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              uint64_t *dropped,
                              struct stanchion_error **err);

void stanchion_queue_config_init(struct stanchion_queue_config *settings, size_t struct_size);

int32_t stanchion_queue_configure(stanchion_client client,
                                  const char *queue_name,
                                  size_t queue_len,
                                  const struct stanchion_queue_config *settings,
                                  struct stanchion_error **err);

int32_t stanchion_worker_open(stanchion_client client,
                              const char *queue_name,
                              size_t queue_len,
                              const struct stanchion_worker_options *options,
                              stanchion_worker *out,
                              struct stanchion_error **err);

int32_t stanchion_worker_poll(stanchion_worker worker,
                              int64_t wait_ms,
                              stanchion_claim *out,
                              struct stanchion_error **err);

int32_t stanchion_worker_complete(stanchion_worker worker,
                                  stanchion_claim claim,
                                  struct stanchion_error **err);

int32_t stanchion_worker_fail(stanchion_worker worker,
                              stanchion_claim claim,
                              const char *reason,
                              size_t reason_len,
                              struct stanchion_error **err);

int32_t stanchion_worker_stop(stanchion_worker worker, struct stanchion_error **err);

int32_t stanchion_worker_hurry(stanchion_worker worker, struct stanchion_error **err);

int32_t stanchion_worker_get_report(stanchion_worker worker,
                                    struct stanchion_worker_report *out,
                                    struct stanchion_error **err);

int32_t stanchion_worker_get_event(stanchion_worker worker,
                                   struct stanchion_worker_event *out,
                                   struct stanchion_error **err);

void stanchion_worker_free(stanchion_worker worker);

int32_t stanchion_client_locks(stanchion_client client,
                               uint64_t page,
                               stanchion_names *out,
                               uint64_t *next_page,
                               struct stanchion_error **err);

int32_t stanchion_client_queues(stanchion_client client,
                                uint64_t page,
                                stanchion_names *out,
                                uint64_t *next_page,
                                struct stanchion_error **err);

size_t stanchion_names_len(stanchion_names names);

int32_t stanchion_names_at(stanchion_names names,
                           size_t index,
                           struct stanchion_text *out,
                           struct stanchion_error **err);

void stanchion_names_free(stanchion_names names);

int32_t stanchion_client_metrics(stanchion_client client,
                                 stanchion_metrics *out,
                                 struct stanchion_error **err);

int32_t stanchion_metrics_text(stanchion_metrics metrics,
                               struct stanchion_text *out,
                               struct stanchion_error **err);

int32_t stanchion_metrics_get(stanchion_metrics metrics,
                              const char *name,
                              size_t name_len,
                              double *out,
                              struct stanchion_error **err);

size_t stanchion_metrics_len(stanchion_metrics metrics);

int32_t stanchion_metrics_at(stanchion_metrics metrics,
                             size_t index,
                             struct stanchion_text *name,
                             double *value,
                             struct stanchion_error **err);

void stanchion_metrics_free(stanchion_metrics metrics);
