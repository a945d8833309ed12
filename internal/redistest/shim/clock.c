/* Sets the wall clock of one process ahead or back, by the nanoseconds that stand
 * in the file $DISTMUTEX_CLOCK: 8 bytes in the machine's order, which may change at
 * any time. Preload it (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset; /* of the file, in nanoseconds */
static int (*clock_of_libc)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find(void) {
  const char *path = getenv("DISTMUTEX_CLOCK");
  int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *at = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) offset = at;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t) {
  if (clock_of_libc == NULL) *(void **)&clock_of_libc = dlsym(RTLD_NEXT, "clock_gettime");
  int r = clock_of_libc(id, t);
  if (r == 0 && offset != NULL && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    int64_t ns = t->tv_nsec + *offset;
    int64_t s = ns / 1000000000;
    if ((ns %= 1000000000) < 0) ns += 1000000000, s--;
    t->tv_sec += s;
    t->tv_nsec = ns;
  }
  return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t != NULL) *t = now.tv_sec;
  return now.tv_sec;
}
