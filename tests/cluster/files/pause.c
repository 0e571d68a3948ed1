// pause: the first process of a pod sandbox, and of the engine's pid namespace. Reaps orphans, ends on SIGTERM or SIGINT.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number) { (void)signal_number; _exit(0); }

static void reap(int signal_number)
{
	(void)signal_number;
	while (waitpid(-1, 0, WNOHANG) > 0)
		;
}

int main(void)
{
	signal(SIGINT, end);
	signal(SIGTERM, end);
	signal(SIGCHLD, reap);
	for (;;)
		pause();
}
