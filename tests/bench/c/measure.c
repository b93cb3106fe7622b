/* Runs a command, so many copies of it at once, and writes what it cost as one JSON line. A program of its own, because
   Linux gives a child the peak memory of the process that forked it: below Python nothing would measure under 10 MiB.

     measure COPIES SECONDS REPORT COMMAND ARGUMENT…

   After SECONDS the copies are killed. Exit status 0 where the report was written, whatever the command's was. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_copies = 16 };

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pid_t start(char** command, const sigset_t* usual_mask, pid_t parent) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a bench that is killed leaves nothing running */
    if (getppid() != parent) _exit(1);
    sigprocmask(SIG_SETMASK, usual_mask, NULL);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

int main(int argc, char** argv) {
    if (argc < 5) return 64;
    const int copies = atoi(argv[1]);
    const double limit = atof(argv[2]);
    if (copies < 1 || copies > most_copies) return 64;

    sigset_t wanted, usual_mask;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigprocmask(SIG_BLOCK, &wanted, &usual_mask);
    pid_t pids[most_copies];
    int running = 0;
    const double begin = now();
    for (; running < copies; ++running)
        if ((pids[running] = start(argv + 4, &usual_mask, getpid())) < 0) return 71;

    double user = 0, system = 0;
    long rss = 0, switches = 0;
    int worst = 0, timed_out = 0;
    while (running > 0) {
        int status;
        struct rusage used;
        const pid_t ended = wait4(-1, &status, WNOHANG, &used);
        if (ended > 0) {
            for (int i = 0; i < copies; ++i)
                if (pids[i] == ended) pids[i] = 0;
            --running;
            user += seconds(used.ru_utime);
            system += seconds(used.ru_stime);
            if (used.ru_maxrss > rss) rss = used.ru_maxrss;
            switches += used.ru_nvcsw + used.ru_nivcsw;
            const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            if (code > worst) worst = code;
            continue;
        }
        const double left = begin + limit - now();
        if (left <= 0 && !timed_out) {
            timed_out = 1;
            for (int i = 0; i < copies; ++i)
                if (pids[i] > 0) kill(pids[i], SIGKILL);
        }
        const double patience = left > 0 ? left : 1;
        const struct timespec wait = {(time_t)patience, (long)((patience - (double)(time_t)patience) * 1e9)};
        sigtimedwait(&wanted, NULL, &wait);
    }
    const double wall = now() - begin;

    FILE* report = fopen(argv[3], "w");
    if (report == NULL) return 74;
    fprintf(report,
            "{\"wall\":%.6f,\"user\":%.6f,\"system\":%.6f,\"rss_kib\":%ld,\"switches\":%ld,\"status\":%d,"
            "\"timed_out\":%s}\n",
            wall, user, system, rss, switches, worst, timed_out ? "true" : "false");
    return fclose(report) == 0 ? 0 : 74;
}
