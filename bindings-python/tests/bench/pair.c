/* The least that a lock on Redis costs: SET NX PX, then EVALSHA of compare-and-delete, with blocking hiredis calls.
 * Reads from its input how many pairs to do now; prints for each how many nanoseconds it took. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *SCRIPT =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
static const char *TOKEN = "0123456789abcdef0123456789abcdef";

static redisReply *checked(redisContext *context, redisReply *reply) {
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL) {
        fprintf(stderr, "bench-pair: %s\n", reply == NULL ? context->errstr : reply->str ? reply->str : "no reply");
        exit(1);
    }
    return reply;
}

static void pair(redisContext *context, const char *sha) {
    freeReplyObject(checked(context, redisCommand(context, "SET bench:hiredis %s NX PX 30000", TOKEN)));
    redisReply *deleted = checked(context, redisCommand(context, "EVALSHA %s 1 bench:hiredis %s", sha, TOKEN));
    if (deleted->integer != 1) {
        fprintf(stderr, "bench-pair: the lock was not deleted\n");
        exit(1);
    }
    freeReplyObject(deleted);
}

static long long nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "bench-pair PORT\n");
        return 2;
    }
    redisContext *context = redisConnect("127.0.0.1", atoi(arguments[1]));
    if (context == NULL || context->err) {
        fprintf(stderr, "bench-pair: cannot connect\n");
        return 1;
    }
    redisReply *sha = checked(context, redisCommand(context, "SCRIPT LOAD %s", SCRIPT));
    long long *taken = NULL;
    int pairs;
    while (scanf("%d", &pairs) == 1) {
        taken = realloc(taken, sizeof *taken * pairs);
        for (int number = 0; number < pairs; number++) {
            long long begin = nanoseconds();
            pair(context, sha->str);
            taken[number] = nanoseconds() - begin;
        }
        for (int number = 0; number < pairs; number++)
            printf("%lld\n", taken[number]);
        fflush(stdout);
    }
    free(taken);
    freeReplyObject(sha);
    redisFree(context);
    return 0;
}
