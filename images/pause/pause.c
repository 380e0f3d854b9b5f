/*
 * pause is the first process of every sandbox and keeps the pod's namespaces open. If
 * containers share its pid namespace, it is their init and reaps zombies. It exits at
 * once on SIGTERM or SIGINT, because stopping a pod waits for it.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int sig)
{
	(void)sig;
	_exit(0);
}

static void reap(int sig)
{
	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int on(int sig, void (*handler)(int), int flags)
{
	struct sigaction act;

	memset(&act, 0, sizeof act);
	act.sa_handler = handler;
	act.sa_flags = flags;
	return sigaction(sig, &act, NULL);
}

int main(void)
{
	if (on(SIGTERM, end, 0) || on(SIGINT, end, 0) ||
	    on(SIGCHLD, reap, SA_NOCLDSTOP | SA_RESTART)) {
		perror("pause: sigaction");
		return 1;
	}
	for (;;)
		pause();
}
