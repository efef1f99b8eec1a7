/* SPDX-License-Identifier: Apache-2.0 */
/* The vector is that of Cacophony for this protocol, which Snow's tests have, too. */
#include <errno.h>
#include <sodium.h>

#include "lib/unit.h"
#include "wire/noise/noise.h"

enum { LONGEST = 128 };

struct bytes {
        uint8_t v[LONGEST];
        size_t n;
};

static struct bytes from_hex(const char *hex)
{
        struct bytes b = { .n = 0 };

        assert_int_equal(sodium_hex2bin(b.v, sizeof(b.v), hex, strlen(hex), NULL, &b.n, NULL), 0);
        return b;
}

static const char psk[] = "54686973206973206d7920417573747269616e20706572737065637469766521";
static const char prologue[] = "4a6f686e2047616c74";

static const char *const messages[][2] = {
        { "4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
          "ed63df2f5a12aee1185ee9c50305f2ecf12421dcb53c047a63b784cf7c54a105" },
        { "4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
          "0e0fe7d5c0c9b92f7478716c8852f1b4f389edb75e3ebe546fafafd5b6f0f7" },
        { "462e20412e20486179656b", "0fe04b26dcfbb69f8a6a94c61f1a26ef88769218d32f5d17c068a6" },
        { "4361726c204d656e676572", "2239e0c540c01f09eb1f4cc5258fd5acfefff18a5a3773f21b7bfe" },
        { "4a65616e2d426170746973746520536179",
          "f216cb03d30fb8af1e561fe02a07552d09b416e27a75e62c77d193718b0bdaae9f" },
        { "457567656e2042f6686d20766f6e2042617765726b",
          "6e8baf98b944184dd7dc5ef14d8108cbeca626de118a5460f3308e294d61e17238bce29bd9" },
};

struct pair {
        struct noise_handshake init, resp;
        struct noise_cipher send[2], receive[2]; /* of the initiator, of the responder */
};

static void begin_pair(struct pair *p, const uint8_t *init_psk, const uint8_t *init_key,
                       const uint8_t *resp_key)
{
        struct bytes key = from_hex(psk), said = from_hex(prologue);

        noise_begin(&p->init, true, init_psk ? init_psk : key.v, said.v, said.n, init_key);
        noise_begin(&p->resp, false, key.v, said.v, said.n, resp_key);
}

/* Takes a fresh pair through the handshake. */
static void meet_pair(struct pair *p)
{
        uint8_t wire[NOISE_GREETING], none[1];

        begin_pair(p, NULL, NULL, NULL);
        assert_int_equal(noise_write(&p->init, NULL, 0, wire), 0);
        assert_int_equal(noise_read(&p->resp, wire, sizeof(wire), none), 0);
        assert_int_equal(noise_write(&p->resp, NULL, 0, wire), 0);
        assert_int_equal(noise_read(&p->init, wire, sizeof(wire), none), 0);
        noise_split(&p->init, &p->send[0], &p->receive[0]);
        noise_split(&p->resp, &p->send[1], &p->receive[1]);
}

TEST(the_public_vector_holds)
{
        struct bytes init_key =
                from_hex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
        struct bytes resp_key =
                from_hex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
        struct bytes hash =
                from_hex("ed5e9692d0ab507b6c2beec3f584fd5b127817a9d20b26cd50aa72c507260fa3"
                         "1aa7d88dd3723316338af37ce0b4cfb2923aeb848bbf2b934911306f01ffc963");
        struct pair p;

        begin_pair(&p, NULL, init_key.v, resp_key.v);
        for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
                struct bytes said = from_hex(messages[i][0]), sealed = from_hex(messages[i][1]);
                uint8_t wire[LONGEST] = { 0 }, heard[LONGEST] = { 0 };
                int from = (int)(i % 2);

                if (i < 2) {
                        assert_int_equal(
                                noise_write(from ? &p.resp : &p.init, said.v, said.n, wire), 0);
                        assert_int_equal(
                                noise_read(from ? &p.init : &p.resp, wire, sealed.n, heard), 0);
                } else {
                        noise_seal(&p.send[from], said.v, said.n, wire);
                        assert_int_equal(noise_open(&p.receive[!from], wire, sealed.n, heard), 0);
                }
                assert_memory_equal(wire, sealed.v, sealed.n);
                assert_memory_equal(heard, said.v, said.n);
                if (i == 1) {
                        assert_memory_equal(p.init.hash, hash.v, hash.n);
                        assert_memory_equal(p.resp.hash, hash.v, hash.n);
                        noise_split(&p.init, &p.send[0], &p.receive[0]);
                        noise_split(&p.resp, &p.send[1], &p.receive[1]);
                }
        }
}

TEST(another_secret_fails_at_the_first_message)
{
        uint8_t wire[NOISE_GREETING], none[1], zero[NOISE_KEY] = { 0 };
        struct pair p;

        begin_pair(&p, zero, NULL, NULL);
        assert_int_equal(noise_write(&p.init, NULL, 0, wire), 0);
        assert_int_equal(noise_read(&p.resp, wire, sizeof(wire), none), -EBADMSG);
}

TEST(each_changed_bit_of_the_handshake_is_seen)
{
        uint8_t wire[NOISE_GREETING], none[1];
        struct pair p;

        for (size_t bit = 0; bit < sizeof(wire) * 8; bit += 7) {
                begin_pair(&p, NULL, NULL, NULL);
                noise_write(&p.init, NULL, 0, wire);
                wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
                assert_int_equal(noise_read(&p.resp, wire, sizeof(wire), none), -EBADMSG);
        }
        begin_pair(&p, NULL, NULL, NULL);
        assert_int_equal(noise_read(&p.resp, wire, sizeof(wire) - 1, none), -EBADMSG);
}

TEST(a_key_without_a_secret_is_refused)
{
        uint8_t wire[NOISE_GREETING], none[1];
        struct pair p;

        begin_pair(&p, NULL, NULL, NULL);
        noise_write(&p.init, NULL, 0, wire);
        assert_int_equal(noise_read(&p.resp, wire, sizeof(wire), none), 0);
        memset(p.resp.peer, 0, sizeof(p.resp.peer)); /* a point of small order */
        assert_int_equal(noise_write(&p.resp, NULL, 0, wire), -EBADMSG);
}

TEST(a_replayed_greeting_does_not_open_the_stream)
{
        uint8_t first[NOISE_GREETING], second[NOISE_GREETING], none[1], sealed[5 + NOISE_TAG];
        struct pair p, again;

        begin_pair(&p, NULL, NULL, NULL);
        noise_write(&p.init, NULL, 0, first);
        noise_read(&p.resp, first, sizeof(first), none);
        noise_write(&p.resp, NULL, 0, second);
        noise_read(&p.init, second, sizeof(second), none);
        noise_split(&p.init, &p.send[0], &p.receive[0]);
        noise_seal(&p.send[0], "hello", 5, sealed);
        begin_pair(&again, NULL, NULL, NULL);
        assert_int_equal(noise_read(&again.resp, first, sizeof(first), none), 0);
        noise_write(&again.resp, NULL, 0, second);
        noise_split(&again.resp, &again.send[1], &again.receive[1]);
        assert_int_equal(noise_open(&again.receive[1], sealed, sizeof(sealed), sealed), -EBADMSG);
}

TEST(sealed_messages_keep_their_order)
{
        uint8_t one[3 + NOISE_TAG], two[3 + NOISE_TAG], heard[3];
        struct pair p;

        meet_pair(&p);
        noise_seal(&p.send[0], "one", 3, one);
        noise_seal(&p.send[0], "two", 3, two);
        assert_int_equal(noise_open(&p.receive[1], two, sizeof(two), heard), -EBADMSG);
        assert_int_equal(noise_open(&p.receive[1], one, sizeof(one), heard), 0);
        assert_memory_equal(heard, "one", 3);
        assert_int_equal(noise_open(&p.receive[1], one, sizeof(one), heard), -EBADMSG);
        assert_int_equal(noise_open(&p.receive[1], two, NOISE_TAG - 1, heard), -EBADMSG);
        assert_int_equal(noise_open(&p.receive[1], two, sizeof(two), heard), 0);
        assert_memory_equal(heard, "two", 3);
}

static int setup_sodium(void **state UNUSED)
{
        return sodium_init() < 0;
}

UNIT_MAIN(setup_sodium, NULL)
