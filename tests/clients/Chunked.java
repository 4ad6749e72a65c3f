import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/**
 * The JDK's HttpClient with a body whose length it does not know, as Spring and
 * LangChain4j send one: in chunks. Prints status and body of the answer.
 */
public class Chunked {
  public static void main(String[] arguments) throws Exception {
    byte[] body = arguments[1].getBytes("UTF-8");
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(arguments[0]))
            .version(HttpClient.Version.HTTP_1_1)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofInputStream(
                () -> new ByteArrayInputStream(body)))
            .build();
    HttpResponse<String> answer = HttpClient.newHttpClient().send(
        request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode());
    System.out.println(answer.body());
  }
}
