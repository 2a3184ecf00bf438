/* Buyers of the demo's flash sale. Whoever started this says who they are, and where the shop's ledger is.
 *
 * Arguments and output are the same in every language: core/examples/flash_sale/buyers.rs describes them. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <pthread.h>
#include <stanchion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Stands for the lock's name in the sale without the lock. */
#define NO_LOCK "-"
/* How long a buyer waits in line. */
#define PATIENCE_MS 60000
/* How long the bank takes to say yes. */
#define BANK_NS 500000
#define MOST_CLERKS 1000
#define DIGITS 20

/* Three plain files. */
static const char *folder;
static int stock_file, fence_file, journal;
/* 0 in the sale without the lock. */
static stanchion_client client;
static const char *lock;
static int process, processes, buyers, next_buyer;

static void give_up(const char *why) {
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static int opened(const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, flags | O_CLOEXEC, 0666);
    if (file < 0) give_up(path);
    return file;
}

static long long read_number(int file) {
    char digits[DIGITS + 1] = {0};
    if (pread(file, digits, DIGITS, 0) < 1) give_up("the ledger is empty");
    return strtoll(digits, NULL, 10);
}

static void write_number(int file, long long number) {
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%0*lld", DIGITS, number);
    if (pwrite(file, digits, DIGITS, 0) != DIGITS) give_up("the ledger is full");
}

/* The ledger refuses a fence smaller than one that it has seen. */
static void admit(long long fence) {
    if (fence == 0) return;
    long long seen = read_number(fence_file);
    if (fence < seen) give_up("the ledger refused a fence");
    if (fence > seen) write_number(fence_file, fence);
}

static void take_payment(int buyer) {
    char name[64], line[64];
    struct timespec bank = {0, BANK_NS};
    nanosleep(&bank, NULL);
    snprintf(name, sizeof name, "receipt-%d", buyer);
    int length = snprintf(line, sizeof line, "buyer %d has paid\n", buyer);
    int receipt = opened(name, O_WRONLY | O_CREAT | O_TRUNC);
    if (write(receipt, line, (size_t)length) != length || fsync(receipt) != 0) give_up("no receipt");
    close(receipt);
}

/* Read, check, pay, write: right only if nobody else does the same meanwhile. */
static void sell(int buyer, long long fence) {
    char line[128];
    admit(fence);
    long long left = read_number(stock_file);
    if (left > 0) {
        take_payment(buyer);
        admit(fence);
        write_number(stock_file, left - 1);
    }
    admit(fence);
    /* One write of a short line at the end of the file: lines never mix. */
    int length = snprintf(line, sizeof line, "%d %d %lld %lld\n", process, buyer, fence, left);
    if (write(journal, line, (size_t)length) != length) give_up("the journal is full");
}

static stanchion_lease wait_in_line(void) {
    stanchion_lock_options options;
    stanchion_lease lease = 0;
    stanchion_error *err = NULL;
    if (client == 0) return 0;
    stanchion_lock_options_init(&options, sizeof options);
    options.wait_ms = PATIENCE_MS;
    if (stanchion_lock_acquire(client, lock, strlen(lock), &options, &lease, &err) < 0) {
        give_up(stanchion_error_message(err));
    }
    return lease;
}

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* Buyers are dealt to the processes like cards, and to the clerks as they come. */
static void *serve_all(void *nothing) {
    int buyer;
    while ((buyer = __atomic_fetch_add(&next_buyer, processes, __ATOMIC_SEQ_CST)) <= buyers) {
        char line[32];
        stanchion_error *err = NULL;
        long long asked = microseconds();
        stanchion_lease lease = wait_in_line();
        long long waited = microseconds() - asked;
        sell(buyer, stanchion_lease_fence(lease));
        if (lease != 0 && stanchion_lease_release(lease, &err) < 0) give_up(stanchion_error_message(err));
        stanchion_lease_free(lease);
        int length = snprintf(line, sizeof line, "%lld\n", waited);
        if (write(STDOUT_FILENO, line, (size_t)length) != length) give_up("nobody listens");
    }
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t clerks[MOST_CLERKS];
    char line[64];
    stanchion_error *err = NULL;
    if (argc != 7) give_up("arguments: FOLDER LOCK PROCESS PROCESSES BUYERS AT_A_TIME");
    folder = argv[1];
    lock = argv[2];
    next_buyer = process = atoi(argv[3]);
    processes = atoi(argv[4]);
    buyers = atoi(argv[5]);
    int at_a_time = atoi(argv[6]);
    if (at_a_time > MOST_CLERKS) give_up("too many clerks");
    stock_file = opened("stock", O_RDWR);
    fence_file = opened("fence", O_RDWR);
    journal = opened("journal", O_WRONLY | O_APPEND);
    /* The store is named by the environment. */
    if (strcmp(lock, NO_LOCK) != 0 && stanchion_connect(NULL, 0, NULL, &client, &err) < 0) {
        give_up(stanchion_error_message(err));
    }
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) return 1;
    for (int index = 0; index < at_a_time; index++) {
        if (pthread_create(&clerks[index], NULL, serve_all, NULL) != 0) give_up("no thread");
    }
    for (int index = 0; index < at_a_time; index++) pthread_join(clerks[index], NULL);
    stanchion_client_free(client);
    return 0;
}
