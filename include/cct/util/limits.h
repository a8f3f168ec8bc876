/* Named limits of the whole program, in one place: a length that comes from
 * outside is compared with one of these before anything is allocated. */
#ifndef CCT_UTIL_LIMITS_H
#define CCT_UTIL_LIMITS_H

#define LIM_LINE_BYTES (8u << 20)       /* one line of an agent's stream */
#define LIM_FRAME_BYTES (64u << 20)     /* one Connect envelope */
#define LIM_JSON_BYTES (64u << 20)      /* one JSON document */
#define LIM_JSON_DEPTH 200u             /* nesting of a JSON document */
#define LIM_HTTP_BODY (64u << 20)       /* body of one control-plane answer, all pages of a list */
#define LIM_MESSAGE_BYTES (64u << 10)   /* one chat message */
#define LIM_RECEIVERS 1000u             /* of one message */
#define LIM_ASKS 4096u                  /* questions of one agent that are open at once */
#define LIM_ASKS_BYTES (64u << 20)      /* ... and their text */
#define LIM_NAME_BYTES 128u             /* a sandbox's name */
#define LIM_VARIABLE_BYTES (32 << 10)   /* value of a project's variable */
#define LIM_TIMEOUT_MAX_S 86400         /* longest sandbox timeout asked for */
#define LIM_QUEUE_BYTES (8u << 20)      /* payload waiting in one queue lane */
#define LIM_MARKS_PER_CELL 4u           /* combining marks kept on one cell */
#define LIM_LOG_FILE_BYTES (4u << 20)   /* log file, then it is rotated once */
#define LIM_RUN_LOG_BYTES (1ull << 30)  /* raw bytes stored of one run */
#define LIM_STDERR_TAIL 4096u           /* bytes of stderr kept of a run */

#endif
