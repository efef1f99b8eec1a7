/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded command lines. Those of Docker, Podman and Charliecloud are also run by
 * tests/launch/containers-hold-the-ranks.sh; those with GPUs and of Apptainer are recorded only.
 */

#include "agent/container/container_words.h"
#include "base/buf.h"

#include "base/memory.h"
#include "lib/unit.h"

static const struct container_site plain = { .program = "docker",
                                             .agent = "/c/agent-1",
                                             .name = "hnlaunch-1" };

static void expect_words(enum container_kind kind, const char *name, const char *args,
                         const struct container_site *site, const char *want)
{
        CLEANUP(container_order_finish)
        struct container_order o = { .kind = kind, .name = xstrdup(name), .dir = xstrdup("/p/q") };
        struct strv argv = STRV_INIT, none = STRV_INIT;
        struct container_site s = *site;
        struct buf line = BUF_INIT;
        CLEANUP(free_textp) char *text = NULL;

        for (size_t len; *args; args += len + (args[len] == ' ')) {
                len = strcspn(args, " ");
                strv_push_mem(&o.args, args, len);
        }
        if (!s.variables)
                s.variables = &none;
        container_words(&o, &s, &argv);
        for (size_t i = 0; i < argv.n; i++)
                buf_printf(&line, "%s%s", i ? " " : "", argv.v[i]);
        text = buf_steal(&line);
        assert_string_equal(text, want);
        strv_finish(&argv);
}

#define ENGINE                                                                                     \
        "run --rm --interactive --log-driver none --pull never --name hnlaunch-1 --network host "  \
        "--pids-limit -1 --security-opt label=disable --cap-add SYS_PTRACE"
#define AGENT " --mount type=bind,source=/c/agent-1,target=/.hnlaunch-agent,readonly"
#define LAST  " --entrypoint /.hnlaunch-agent"

TEST(docker)
{
        static const gid_t groups[] = { 44, 109 };
        CLEANUP(strv_finish) struct strv names = STRV_INIT;
        struct container_site s = plain;

        expect_words(CONTAINER_DOCKER, "img", "", &s,
                     "docker " ENGINE " --ipc host" AGENT LAST " img --inside");
        s.bind_dir = true;
        expect_words(CONTAINER_DOCKER, "img", "-v /d:/d --shm-size=8g", &s,
                     "docker " ENGINE AGENT " --mount type=bind,source=/p/q,target=/p/q" LAST
                     " -v /d:/d --shm-size=8g img --inside");
        s = plain;
        s.is_user = true;
        s.uid = 1000;
        s.gid = 100;
        s.groups = groups;
        s.n_groups = 2;
        strv_push(&names, "HNLAUNCH_MANAGED");
        strv_push(&names, "USER");
        s.variables = &names;
        expect_words(CONTAINER_DOCKER, "img", "--ipc private", &s,
                     "docker " ENGINE " --user 1000:100 --group-add 44 --group-add 109" AGENT
                     " --env HNLAUNCH_MANAGED --env USER" LAST " --ipc private img --inside");
}

TEST(devices)
{
        struct container_site s = plain;

        s.nvidia = s.infiniband = s.is_root = true;
        expect_words(CONTAINER_DOCKER, "img", "", &s,
                     "docker " ENGINE " --ipc host --gpus all --device /dev/infiniband --cap-add "
                     "IPC_LOCK --ulimit memlock=-1:-1" AGENT LAST " img --inside");
        s.program = "podman";
        s.is_root = false;
        expect_words(CONTAINER_PODMAN, "img", "", &s,
                     "podman " ENGINE " --ipc host --device nvidia.com/gpu=all --device "
                     "/dev/infiniband" AGENT LAST " img --inside");
        s.nvidia = s.infiniband = false;
        s.amd = true;
        expect_words(CONTAINER_PODMAN, "img", "", &s,
                     "podman " ENGINE " --ipc host --device /dev/kfd --device /dev/dri" AGENT LAST
                     " img --inside");
}

TEST(apptainer)
{
        struct container_site s = plain;

        s.program = "apptainer";
        expect_words(CONTAINER_APPTAINER, "/s/a.sif", "", &s,
                     "apptainer exec --bind /c/agent-1 /s/a.sif /c/agent-1 --inside");
        s.nvidia = s.amd = s.bind_dir = true;
        expect_words(CONTAINER_APPTAINER, "docker://a", "--bind /d", &s,
                     "apptainer exec --nv --rocm --bind /c/agent-1 --bind /p/q --bind /d "
                     "docker://a /c/agent-1 --inside");
}

TEST(charliecloud)
{
        struct container_site s = plain;

        s.program = "ch-run";
        expect_words(CONTAINER_CHARLIECLOUD, "/i", "", &s, "ch-run /i -- /proc/self/fd/9 --inside");
        s.image_env = s.bind_home = s.bind_dir = true;
        expect_words(CONTAINER_CHARLIECLOUD, "/i", "--write", &s,
                     "ch-run --set-env --home --bind=/p/q --write /i -- /proc/self/fd/9 --inside");
}

TEST(exec)
{
        struct container_site s = plain;

        s.agent = "/tmp/.hnlaunch-agent-1";
        expect_words(CONTAINER_EXEC, "box", "", &s,
                     "docker exec --interactive box /tmp/.hnlaunch-agent-1 --inside --remove");
        s.program = "podman";
        s.nvidia = true;
        expect_words(CONTAINER_EXEC, "box", "--user me", &s,
                     "podman exec --interactive --user me box /tmp/.hnlaunch-agent-1 --inside "
                     "--remove");
}
